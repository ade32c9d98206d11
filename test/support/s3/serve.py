"""Serves S3 on 127.0.0.1 until stdin ends: moto's S3, with each request carried out alone, as a store with conditional writes must.

Prints the port that it chose. With the argument `unconditional` the server knows no conditional writes, as older S3-speaking servers.
"""

import io
import os
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

moto = DomainDispatcherApplication(create_backend_app)
one_at_a_time = threading.Lock()
conditional = "unconditional" not in sys.argv[1:]

# A server may return fewer keys than it is asked for: every listing of more than a few has several pages here.
KEYS_OF_A_PAGE = 20


def application(environ, start_response):
    """Reads the whole body before its turn, so that a client that stops in the middle neither holds the others up nor leaves half."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length)
    if len(body) < length:
        start_response("400 Bad Request", [("Content-Length", "0")])
        return [b""]
    environ["wsgi.input"] = io.BytesIO(body)
    if not conditional:
        environ.pop("HTTP_IF_NONE_MATCH", None)
    if "list-type=2" in environ["QUERY_STRING"]:
        environ["QUERY_STRING"] += f"&max-keys={KEYS_OF_A_PAGE}"
    with one_at_a_time:
        return list(moto(environ, start_response))


class QuietHandler(WSGIRequestHandler):
    """Says nothing of requests."""

    def log_request(self, *_):
        """No access log."""


def end_with_stdin():
    """A parent that is killed takes its server along."""
    sys.stdin.read()
    os._exit(0)


server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=QuietHandler)
threading.Thread(target=end_with_stdin, daemon=True).start()
print(server.server_port, flush=True)
server.serve_forever()
