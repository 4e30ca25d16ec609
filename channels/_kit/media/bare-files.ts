import type { ChannelTools, HttpRequest } from 'sluice';
import { type Upload, mediaKind } from 'sluice/channel-kit';

/** Returns the tools of a channel whose provider takes a file as the body itself: a form that has one, and nothing else, is sent as its bytes. */
export function bareFiles(tools: ChannelTools): ChannelTools {
  const { http } = tools;
  return {
    ...tools,
    http: {
      ...http,
      send(call, request) {
        const file = soleFile(request.body);
        if (file === undefined) return http.send(call, request);
        // The type is that of the bytes, not the one that the client declared.
        const type = mediaKind(file.head) ?? 'application/octet-stream';
        return http.send(call, {
          ...request,
          headers: { ...request.headers, 'content-type': type },
          body: file,
        });
      },
    },
  };
}

function soleFile(body: HttpRequest['body']): Upload | undefined {
  if (!Array.isArray(body) || body.length !== 1) return undefined;
  const [part] = body as readonly ({ readonly file: Upload } | object)[];
  return part !== undefined && 'file' in part ? part.file : undefined;
}
