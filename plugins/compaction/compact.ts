import { of } from 'rxjs';
import { missingValue, type GatewayEvent, type JsonObject } from 'sluice';
import { readContextManagement } from './context-management.ts';
import { onlyHere, over, reporting, worthwhile, type Reply } from './create.ts';
import { openCalls, userMessages, type Item } from './items.ts';
import { compactionObject, suffixOf } from './reply.ts';
import { compacted, compactsItself, keptShare, refersBack, unseen, type Work } from './work.ts';

/**
 * Returns a request for compaction alone: answered with the user's messages and one compaction item. With `stream: true` or `generate: true` the
 * context is compacted and then answered, as in a request for an answer that has grown too long. Of `context_management` only the
 * instructions mean something here: that and when it is compacted the path says.
 */
export function compact(work: Work): Reply {
  const { call, target } = work;
  const management = readContextManagement(call.body.context_management);
  // The client's own word: on the way here the body may have been made anew.
  const answered = call.stream || call.wire.body?.generate === true;
  const native = compactsItself(target) && !answered;
  const lost = native ? [...management.lost, ...onlyHere(management)] : management.lost;
  return reporting(work, native, lost, () =>
    native ? byProvider(work) : byGateway(work, answered, management.compaction?.instructions),
  );
}

function byProvider(work: Work): Reply {
  const { call, next } = work;
  const { body } = compactable(work);
  const same = Object.keys(body).length === Object.keys(call.body).length && body.input === call.body.input;
  return next(same ? call : call.with({ body }));
}

/** Returns the body without what only the gateway reads, and the context in it. */
function compactable({ call, items, changed }: Work): {
  readonly body: JsonObject;
  readonly context: readonly Item[];
} {
  const { stream: _stream, generate: _generate, context_management: _management, ...body } = call.body;
  const context = items.filter(({ type }) => type !== 'compaction_trigger');
  return { body: changed || context.length < items.length ? { ...body, input: context } : body, context };
}

async function byGateway(work: Work, answered: boolean, prompt: string | undefined): Reply {
  const { call, next, codec } = work;
  const { body, context } = compactable(work);
  if (refersBack(body)) throw unseen();
  if (context.length === 0) throw missingValue('input');
  if (answered) {
    const parts = worthwhile(context, work.threshold);
    if (parts === undefined) return next(call.with({ codec, body, decoded: true, stream: call.stream }));
    return over(work, body, { ...parts, covers: work.written, prompt });
  }
  const suffix = suffixOf(call);
  const messages = userMessages(context, work.threshold * keptShare, (index) => `msg_${suffix}_${index}`);
  const { item, usage, attempt } = await compacted(work, {
    head: context,
    kept: openCalls(context),
    index: messages.length,
    prompt,
  });
  const result: GatewayEvent = { type: 'result', value: compactionObject(call, [...messages, item], usage) };
  const usageEvent: GatewayEvent = { type: 'usage', usage };
  return attempt === undefined ? of(result, usageEvent) : of(attempt, result, usageEvent);
}
