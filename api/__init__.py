"""The service and its command line: HTTP, console and the command `eddy`.

    request ─► edge (room, token, body) ─► routes ─► core: inbox, engine's thread, writer's thread ─► answer, frames

`app.py` puts the routes over one service, `server.py` is the process around it, `opening.py` what a start says. The command
line (`cli.py`, `api/commands`) talks to a service by the client alone.
"""
