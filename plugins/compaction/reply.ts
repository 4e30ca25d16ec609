/** Writes replies that hold a compaction. */
import { concat, concatMap, defer, EMPTY, of, type Observable } from 'rxjs';
import { sumUsage, type Call, type GatewayEvent, type JsonObject, type Usage } from 'sluice';
import type { Item } from './items.ts';
import { written } from './usage.ts';

const format = 'responses';

/** Returns the letters of the call's id from which the ids of its reply are made. */
export function suffixOf(call: Call): string {
  return call.id.replace(/^req_/, '').replaceAll(/[^A-Za-z0-9]/g, '');
}

/** Returns a compaction item as events of a response, in the form of a provider with native compaction. */
function itemEvents(item: Item): readonly GatewayEvent[] {
  const opaqueEvent = (type: string, fields: JsonObject): GatewayEvent => ({
    type: 'opaque',
    format,
    value: { type, output_index: 0, ...fields },
  });
  return [
    opaqueEvent('response.output_item.added', { item }),
    opaqueEvent('response.compaction.compacting', { item_id: item.id }),
    opaqueEvent('response.output_item.done', { item }),
  ];
}

/** Returns the answer over a compacted context: the compaction is its first item, and what that cost is part of its usage. */
export function withCompaction(
  answer: Observable<GatewayEvent>,
  item: Item,
  spent: Usage,
): Observable<GatewayEvent> {
  return defer(() => {
    let hasReported = false;
    const changed = answer.pipe(
      concatMap((event) => {
        if (event.type === 'head') return [event, ...itemEvents(item)];
        if (event.type !== 'usage') return [event];
        hasReported = true;
        return [{ type: 'usage', usage: sumUsage(event.usage, spent) } satisfies GatewayEvent];
      }),
    );
    const rest = defer(() => (hasReported ? EMPTY : of<GatewayEvent>({ type: 'usage', usage: spent })));
    return concat(changed, rest);
  });
}

/** Returns a reply that consists of the compaction alone. */
export function compactionAlone(call: Call, item: Item, spent: Usage): readonly GatewayEvent[] {
  return [
    { type: 'head', id: `resp_${suffixOf(call)}`, model: call.model, created: call.created },
    ...itemEvents(item),
    { type: 'usage', usage: spent },
    { type: 'finish', choice: 0, reason: 'stop' },
  ];
}

/** Returns the object that a request for compaction is answered with. */
export function compactionObject(call: Call, output: readonly Item[], spent: Usage): JsonObject {
  return {
    id: `resp_${suffixOf(call)}`,
    object: 'response.compaction',
    created_at: call.created,
    output,
    usage: written(spent),
  };
}
