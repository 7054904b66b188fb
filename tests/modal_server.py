"""A stand-in for Modal's server: it says yes to everything, and no function runs.

    python tests/modal_server.py REQUESTS VOLUME

prints the port that it listens on, and writes each request as a line of JSON: {"call": ..., "request": ...}.
A function that is called returns STATUS. The volume is the folder VOLUME; of a file beside which lies another
with `.short` at the end of its name, half is sent.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from google.protobuf.json_format import MessageToDict
from grpclib import GRPCError, Status
from grpclib.const import Handler
from grpclib.server import Server
from modal._serialization import serialize
from modal_proto import api_grpc, api_pb2

BUILDER = "2025.06"
STATUS = 3
"""What every function returns."""


class Service:
    """Answers with new ids where the client wants ids, and with empty messages elsewhere."""

    def __init__(self, requests: Path, volume: Path) -> None:
        self.requests, self.volume = requests, volume
        self.ids = 0
        self.address = ""
        """Of `send`."""

    def __mapping__(self) -> dict[str, Handler]:
        methods: Any = type("Methods", (api_grpc.ModalClientBase,), {})
        methods.__abstractmethods__ = frozenset()  # all are replaced
        return {
            path: handler._replace(func=self.handler(path.rpartition("/")[2], handler.reply_type))
            for path, handler in methods().__mapping__().items()
        }

    def handler(self, call: str, reply_type: type) -> Callable[..., Any]:
        async def handle(stream: Any) -> None:
            request = await stream.recv_message()
            with self.requests.open("a") as file:
                file.write(json.dumps({"call": call, "request": MessageToDict(request)}) + "\n")
            answer = getattr(self, call, lambda request: reply_type())
            await stream.send_message(answer(request))

        return handle

    def new(self, kind: str) -> str:
        self.ids += 1
        return f"{kind}-{self.ids}"

    def AppCreate(self, request: Any) -> Any:
        return api_pb2.AppCreateResponse(app_id=self.new("ap"))

    def AppGetLogs(self, request: Any) -> Any:
        return api_pb2.TaskLogsBatch(app_done=True)

    def EnvironmentGetOrCreate(self, request: Any) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER)
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id=self.new("en"), metadata=metadata)

    def MountGetOrCreate(self, request: Any) -> Any:
        return api_pb2.MountGetOrCreateResponse(mount_id=self.new("mo"))

    def MountPutFile(self, request: Any) -> Any:
        return api_pb2.MountPutFileResponse(exists=True)

    def VolumeGetOrCreate(self, request: Any) -> Any:
        return api_pb2.VolumeGetOrCreateResponse(volume_id=self.new("vo"))

    def SecretGetOrCreate(self, request: Any) -> Any:
        return api_pb2.SecretGetOrCreateResponse(secret_id=self.new("st"))

    def ImageGetOrCreate(self, request: Any) -> Any:
        return api_pb2.ImageGetOrCreateResponse(
            image_id=self.new("im"),
            result=api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS),
            metadata=api_pb2.ImageMetadata(image_builder_version=BUILDER),
        )

    def FunctionPrecreate(self, request: Any) -> Any:
        return api_pb2.FunctionPrecreateResponse(
            function_id=self.new("fu"), handle_metadata=_handle(request.function_name)
        )

    def FunctionCreate(self, request: Any) -> Any:
        ranked = api_pb2.FunctionData.RankedFunction(rank=0, function=request.function)
        return api_pb2.FunctionCreateResponse(
            function_id=request.existing_function_id,
            handle_metadata=_handle(request.function.function_name),
            function=request.function,
            function_data=api_pb2.FunctionData(ranked_functions=[ranked]),
        )

    def FunctionBindParams(self, request: Any) -> Any:
        return api_pb2.FunctionBindParamsResponse(
            bound_function_id=self.new("fu"), handle_metadata=_handle("")
        )

    def FunctionMap(self, request: Any) -> Any:
        item = api_pb2.FunctionPutInputsResponseItem(idx=0, input_id="in-1")
        return api_pb2.FunctionMapResponse(function_call_id=self.new("fc"), pipelined_inputs=[item])

    def FunctionGetOutputs(self, request: Any) -> Any:
        result = api_pb2.GenericResult(
            status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS, data=serialize(STATUS)
        )
        item = api_pb2.FunctionGetOutputsItem(
            result=result, data_format=api_pb2.DATA_FORMAT_PICKLE, idx=0, input_id="in-1"
        )
        return api_pb2.FunctionGetOutputsResponse(outputs=[item], last_entry_id="1-0")

    def VolumeListFiles(self, request: Any) -> Any:
        if not (self.volume / request.path).is_file():
            raise GRPCError(Status.NOT_FOUND, f"No such file: {request.path}")
        entry = api_pb2.FileEntry(path=request.path, type=api_pb2.FileEntry.FILE, size=1)
        return api_pb2.VolumeListFilesResponse(entries=[entry])

    def VolumeGetFile2(self, request: Any) -> Any:
        size = (self.volume / request.path).stat().st_size
        url = f"{self.address}/{request.path}"
        return api_pb2.VolumeGetFile2Response(get_urls=[url] if size else [], size=size, start=0, len=size)

    async def send(self, request: web.Request) -> web.Response:
        """A block of a file, over HTTP."""
        data = (self.volume / request.match_info["path"]).read_bytes()
        short = (self.volume / f"{request.match_info['path']}.short").exists()
        return web.Response(body=data[: len(data) // 2] if short else data)


def _handle(name: str) -> Any:
    return api_pb2.FunctionHandleMetadata(
        function_name=name,
        function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION,
        supported_input_formats=[api_pb2.DATA_FORMAT_PICKLE],
        supported_output_formats=[api_pb2.DATA_FORMAT_PICKLE],
    )


async def _serve(requests: Path, volume: Path) -> None:
    service = Service(requests, volume)
    files = web.Application()
    files.router.add_get("/{path:.*}", service.send)
    runner = web.AppRunner(files)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server([service])
        await server.start(sock=listener)
        print(listener.getsockname()[1], flush=True)
        await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), Path(sys.argv[2])))
