"""A stand-in for Modal's server: it says yes to everything, and no function runs.

    python tests/modal_server.py REQUESTS

prints the port that it listens on, and writes each request as a line of JSON: {"call": ..., "request": ...}.
A function that is called returns STATUS.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from grpclib.const import Handler
from grpclib.server import Server
from modal._serialization import serialize
from modal_proto import api_grpc, api_pb2

BUILDER = "2025.06"
STATUS = 3
"""What every function returns."""


class Service:
    """Answers with new ids where the client wants ids, and with empty messages elsewhere."""

    def __init__(self, requests: Path) -> None:
        self.requests = requests
        self.ids = 0

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


def _handle(name: str) -> Any:
    return api_pb2.FunctionHandleMetadata(
        function_name=name,
        function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION,
        supported_input_formats=[api_pb2.DATA_FORMAT_PICKLE],
        supported_output_formats=[api_pb2.DATA_FORMAT_PICKLE],
    )


async def _serve(requests: Path) -> None:
    server = Server([Service(requests)])
    await server.start("127.0.0.1", 0)
    assert server._server is not None
    print(server._server.sockets[0].getsockname()[1], flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
