"""Serves networks by the Open Inference Protocol v2.

`service.Service` answers requests without a socket; `http.application(service)` is an ASGI app around it and
`grpc.servicer(service)` a gRPC handler, for `hetnn serve` or for another server that mounts them. Nothing here imports
torch or the compiler.
"""
