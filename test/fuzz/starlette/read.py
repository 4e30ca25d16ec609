"""Reads bodies of multipart/form-data with Starlette: a JSON object a line in, a JSON object a line out."""

import asyncio
import base64
import json
import sys
from importlib.metadata import version

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser


async def read(content_type, body):
    async def stream():
        yield body

    try:
        parser = MultiPartParser(Headers({"content-type": content_type}), stream())
        form = await parser.parse()
    except MultiPartException as error:
        return {"error": error.message}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    parts = []
    for name, value in form.multi_items():
        if isinstance(value, str):
            content = value.encode("utf-8", "surrogateescape")
            parts.append({"name": name, "filename": None, "type": None, "content": content})
        else:
            content = await value.read()
            parts.append({"name": name, "filename": value.filename, "type": value.content_type, "content": content})
    for part in parts:
        part["content"] = base64.b64encode(part["content"]).decode()
    return {"parts": parts}


async def main():
    print(json.dumps({"starlette": version("starlette"), "python-multipart": version("python-multipart")}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(await read(asked["type"], base64.b64decode(asked["body"]))), flush=True)


asyncio.run(main())
