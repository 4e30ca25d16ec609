import type { WireFrame } from '../../core/sdk/format.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { modelOf, type Case } from './cases.ts';
import type { Seen } from './clients.ts';
import { dialects, tagOf, reportedUsage, wordsOf } from './dialects.ts';

/**
 * How a call came out: a reply that is `complete`; a status in the client's format (`refused`); a stream that says itself that it is
 * `broken`; a whole reply whose connection broke (`severed`); what passed as it came and is wrong as it came (`verbatim`); the client
 * `left`; or nothing of these (`wrong`).
 */
export type Outcome = 'complete' | 'refused' | 'broken' | 'severed' | 'verbatim' | 'left' | 'wrong';

/** Outcome of a call, and its errors. */
export interface Verdict {
  readonly outcome: Outcome;
  readonly problems: readonly string[];
}

/** Patterns of internals that no client may receive. */
const leaks = /127\.0\.0\.1|localhost|sk-upstream|undici|ECONN|UND_ERR|node_modules/i;

/** Judges what a client saw of a case. */
export function judge(one: Case, seen: Seen): Verdict {
  const problems: string[] = [];
  if (seen.hung) return { outcome: 'wrong', problems: ['there was no end'] };
  if (seen.left) return { outcome: 'left', problems };
  const outcome = look(one, seen, problems);
  const wanted = expected(one);
  if (outcome !== 'wrong' && !wanted.includes(outcome))
    problems.push(`is ${outcome} with status ${seen.status}, and not ${wanted.join(' or ')}`);
  if (leaks.test(seen.text)) problems.push('tells of the gateway’s own side');
  return { outcome, problems };
}

/** The ways in which a case may come out. */
export function expected(one: Case): readonly Outcome[] {
  const { fault, mode, client, channel, second } = one;
  const passes = client === channel;
  if (fault.verbatim === true) {
    if (passes) return ['verbatim'];
    return channel === 'generate-content' ? ['complete', 'broken'] : ['complete'];
  }
  switch (fault.moment) {
    case 'sound':
      return ['complete'];
    case 'before':
      return second === undefined ? ['refused'] : ['complete'];
    case 'opened':
      // The frames that open a reply are a beginning in formats that write them.
      return second === undefined ? ['refused', 'broken'] : ['complete', 'refused', 'broken'];
    case 'after':
      if (mode === 'stream') return ['broken'];
      if (!passes) return second === undefined ? ['refused'] : ['complete'];
      // Half a document passes as it comes, unless something holds its bytes back.
      return second === undefined ? ['refused', 'severed'] : ['complete', 'refused', 'severed'];
    case 'endless':
      return ['left'];
  }
}

function look(one: Case, seen: Seen, problems: string[]): Outcome {
  if (seen.status === 0) {
    if (one.mode === 'whole' && one.fault.moment === 'after' && one.client === one.channel) return 'severed';
    problems.push('got no answer');
    return 'wrong';
  }
  if (seen.status !== 200) return lookAtRefusal(one, seen, problems);
  return one.mode === 'stream' ? lookAtStream(one, seen, problems) : lookAtWhole(one, seen, problems);
}

function lookAtRefusal({ client, fault }: Case, seen: Seen, problems: string[]): Outcome {
  if (!seen.ended) problems.push('the error is cut');
  if (seen.headers['content-type'] !== 'application/json')
    problems.push(`the error is ${String(seen.headers['content-type'])}`);
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(seen.text) as Record<string, unknown>;
  } catch {
    problems.push('the error is no JSON');
  }
  if (!dialects[client].isEnvelope(body, seen.status))
    problems.push(`not the envelope of ${client}: ${seen.text.slice(0, 200)}`);
  if (fault.statuses.length > 0 && !fault.statuses.includes(seen.status))
    problems.push(`status ${seen.status}, and not ${fault.statuses.join(' or ')}`);
  if (seen.status === 429 && !/^[1-9]\d*$/.test(String(seen.headers['retry-after'])))
    problems.push(`429 with retry-after ${String(seen.headers['retry-after'])}`);
  return 'refused';
}

function lookAtWhole(one: Case, seen: Seen, problems: string[]): Outcome {
  if (!seen.ended) return 'severed';
  try {
    const read = dialects[one.client].readWhole(JSON.parse(seen.text) as Record<string, unknown>);
    checkRead(one, read, problems);
    if (read.complete) return 'complete';
    problems.push(`is no complete reply: ${seen.text.slice(0, 200)}`);
    return 'wrong';
  } catch (error) {
    problems.push(`cannot be read: ${String(error)}`);
    return 'wrong';
  }
}

function lookAtStream(one: Case, seen: Seen, problems: string[]): Outcome {
  const { client, channel, fault } = one;
  if (!seen.ended) {
    problems.push('the connection broke in the middle of the stream');
    return 'wrong';
  }
  if (seen.headers['content-type'] !== 'text/event-stream')
    problems.push(`the stream is ${String(seen.headers['content-type'])}`);
  if (client === channel && fault.verbatim === true) return 'verbatim';
  if (!/(\r\n\r\n|\n\n|\r\r|\n\r\n)$/.test(seen.text)) problems.push('the stream ends inside a frame');
  const all = parseSse(seen.text);
  // What passes is not read: a frame of garbage reaches the client, and the error behind it.
  const frames =
    client === channel && fault.name === 'garbage-after'
      ? all.filter(({ data }) => !data.endsWith('oops'))
      : all;
  const wire: WireFrame[] = [];
  try {
    for (const { event, data } of frames) {
      const named = event === undefined ? {} : { event };
      wire.push(
        data === '[DONE]' ? { ...named, text: data } : { ...named, json: JSON.parse(data) as JsonObject },
      );
    }
  } catch {
    problems.push('a frame is no JSON');
    return 'wrong';
  }
  problems.push(...dialects[client].problems(wire));
  const read = dialects[client].readFrames(frames);
  checkRead(one, read, problems);
  if (read.complete && read.error === undefined) return 'complete';
  if (read.error !== undefined && !read.complete) return 'broken';
  problems.push('ends, and says neither that it is complete nor that it is not');
  return 'wrong';
}

/** Checks that the received text is the provider's text, or its beginning. */
function checkRead(
  one: Case,
  read: ReturnType<(typeof dialects)[Case['client']]['readFrames']>,
  problems: string[],
): void {
  const words = wordsOf(tagOf(one.number, one.size));
  const expectedText = read.complete
    ? words.join('')
    : one.fault.moment === 'after'
      ? `${words[0]}${words[1]}`
      : '';
  if (read.text !== expectedText && one.fault.verbatim !== true)
    problems.push(
      `says ${JSON.stringify(read.text.slice(0, 80))}, and not ${JSON.stringify(expectedText.slice(0, 80))}`,
    );
  const strangers = read.models.filter((model) => model !== modelOf(one));
  if (strangers.length > 0) problems.push(`is of the model ${String(strangers[0])}`);
  if (read.complete && read.output !== undefined && read.output !== reportedUsage.output)
    problems.push(`tells ${read.output} output tokens`);
}
