"""FIXED: py4j's way into Java, without its second tries."""

from typing import Any

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway


class Gateway(JavaGateway):  # type: ignore[misc]
    """A gateway to the server at a local port, for one thread at a time."""

    def __init__(self, port: int, token: str, timeout: float) -> None:
        """`timeout`: seconds that a call may take."""
        # What Python lets go of is not told to Java, as that could happen in any thread: see `detach`.
        super().__init__(
            gateway_parameters=GatewayParameters(
                port=port, auth_token=token, read_timeout=timeout, enable_memory_management=False
            )
        )

    def _create_gateway_client(self) -> Any:
        return _Client(gateway_parameters=self.gateway_parameters)


class _Client(GatewayClient):  # type: ignore[misc]
    """Sends a command once: the package's own client sends it again where an answer is lost, which might
    take a step twice, and answers Ctrl-C with an error of its own and a log on stderr."""

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        connection = self._get_connection()
        try:
            answer = connection.send_command(command)
        except BaseException:
            connection.close(True)
            raise
        self._give_back_connection(connection)
        return answer
