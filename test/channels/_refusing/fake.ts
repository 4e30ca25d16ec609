import type { ServerResponse } from 'node:http';
import {
  formatVoice,
  reply,
  startUpstream,
  type ChannelUnderTest,
  type ScriptedUpstream,
  type SeenRequest,
  type Voice,
} from 'sluice/testing';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { matchesModel } from '../../../core/sdk/allowed-models.ts';
import { streamHeaders } from '../../../core/sdk/testing/voice.ts';
import { isJson, type Json } from './checks.ts';
import type { Row } from './rows.ts';
import { rules, type Rule } from './table.ts';

/** Decision of a fake provider on a request. */
export interface Judged {
  readonly wire: string;
  readonly body: Json;
  /** Why it was refused; absent where it was taken. */
  readonly refused?: { readonly rule: Rule; readonly member: string };
}

/** A fake provider, or the part of one that stands for one row. */
export interface Refusing {
  readonly upstream: ScriptedUpstream;
  /** Takes what has been judged for a row since the last time. */
  judgedFor(row: number): readonly Judged[];
}

const voices: Readonly<Record<string, Voice>> = Object.fromEntries(
  await Promise.all(
    ['chat-completions', 'responses', 'messages', 'generate-content', 'converse', 'invoke'].map(
      async (name) => [name, await formatVoice(name)] as const,
    ),
  ),
);

/** The format that a request is in, by its path. */
function wireOf(url: string, kind: string): string {
  if (/\/(?:chat\/completions|invocations(?:-response-stream)?)(?:\?|$)/.test(url)) return 'chat-completions';
  if (/\/responses(?:\?|$)/.test(url)) return 'responses';
  if (/\/messages(?:\?|$)/.test(url) || (/RawPredict/i.test(url) && url.includes('anthropic')))
    return 'messages';
  if (/:(?:streamG|g)enerateContent/.test(url)) return 'generate-content';
  if (/\/converse(?:-stream)?$/.test(url)) return 'converse';
  if (/\/invoke(?:-with-response-stream)?$/.test(url)) return 'invoke';
  return kind;
}

/** The rules of a row in a format. */
function rulesFor({ kind, model }: Row, wire: string): readonly Rule[] {
  return rules.filter(
    ({ kinds, models = ['*'], wires = ['chat-completions'] }) =>
      (kinds.includes('*') || kinds.includes(kind)) &&
      wires.includes(wire) &&
      matchesModel(
        models.filter((name) => !name.startsWith('!')),
        model,
      ) &&
      !matchesModel(
        models.flatMap((name) => (name.startsWith('!') ? [name.slice(1)] : [])),
        model,
      ),
  );
}

/** Returns what the provider of a row does with a request. */
export function judge(row: Row, wire: string, body: Json, stream: boolean): Judged {
  for (const rule of rulesFor(row, wire)) {
    const member = rule.refuses({ model: row.model, body, stream });
    if (member !== undefined) return { wire, body, refused: { rule, member } };
  }
  return { wire, body };
}

const hasStream = ({ url }: SeenRequest, body: Json): boolean =>
  body['stream'] === true || /stream/i.test(url.replace(/^.*\//, ''));

/** Starts a provider that stands for all rows, each at `/INDEX/…`, and refuses what the real ones refuse. */
export async function startRefusing(
  rows: readonly Row[],
  tested: readonly ChannelUnderTest[],
): Promise<Refusing> {
  const judged = rows.map((): Judged[] => []);
  const upstream = await startUpstream((request, response) => {
    const [, index = '', url = ''] = /^\/(\d+)(\/.*)$/.exec(request.url) ?? [];
    const row = rows[Number(index)];
    const own = tested[Number(index)];
    if (row === undefined || own === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    if (request.method === 'GET') {
      const list = own.lists?.(url);
      response.writeHead(list === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(list ?? {}));
      return;
    }
    const parsed: unknown = JSON.parse(request.body.toString());
    const body = isJson(parsed) ? parsed : {};
    const wire = wireOf(url, row.kind);
    const stream = hasStream({ ...request, url }, body);
    const one = judge(row, wire, body, stream);
    judged[Number(index)]?.push(one);
    const voice =
      wire === 'chat-completions' || voices[wire] === undefined
        ? (own.voice ?? voices['chat-completions'])
        : voices[wire];
    if (voice === undefined) throw new Error(`Nobody speaks ${wire}.`);
    if (one.refused === undefined) answer(voice, { ...request, url }, response, stream);
    else refuse(voice, one.refused, response);
  });
  return { upstream, judgedFor: (row) => judged[row]?.splice(0) ?? [] };
}

function refuse(
  voice: Voice,
  { rule, member }: NonNullable<Judged['refused']>,
  response: ServerResponse,
): void {
  const { status = 400 } = rule;
  response
    .writeHead(status, { 'content-type': 'application/json', ...voice.errorHeaders?.(status) })
    .end(voice.error(status, rule.says.replaceAll('$', member)));
}

function answer(voice: Voice, request: SeenRequest, response: ServerResponse, stream: boolean): void {
  const events = reply('Apple.').filter((step): step is GatewayEvent => 'type' in step);
  const named = {
    ...request,
    body: Buffer.from(JSON.stringify({ model: 'm', ...(JSON.parse(request.body.toString()) as object) })),
  };
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(voice.whole(events, named));
    return;
  }
  const { pieces, end } = voice.stream(events, named);
  response.writeHead(200, streamHeaders(voice));
  for (const piece of pieces) response.write(piece);
  response.end(end);
}
