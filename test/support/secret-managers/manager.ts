/** Parts that the fake secret managers share. */
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../upstream.ts';

/** Status and body of an answer. A text is sent as it is. */
export type Answer = readonly [status: number, body?: unknown];

/** A fake secret manager. */
export interface FakeManager extends ScriptedUpstream {
  /** Answers everything in place of what it has: with an answer, or not at all. */
  failing: Answer | 'hangs' | undefined;
}

/** Starts a server that answers as `answer` says. */
export async function startManager(answer: (request: SeenRequest) => Answer): Promise<FakeManager> {
  const upstream = await startUpstream((request, response) => {
    if (manager.failing === 'hangs') return;
    const [status, body] = manager.failing ?? answer(request);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body));
  });
  const manager: FakeManager = Object.assign(upstream, { failing: undefined });
  return manager;
}
