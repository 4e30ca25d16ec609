import type { JsonObject, Reads, UpstreamRequest, Loss } from 'sluice';
import type { Form, MemberEdits } from 'sluice/channel-kit';
import type { Call, Target } from 'sluice/internal';
import { findModel } from './bytes.ts';
import { losesInto, plainHeaders } from './encode-request.ts';
import { edited as withEdits, type Adaptation } from './profile.ts';

/**
 * Returns the client's own bytes for a channel of the same format: untouched, or with nothing changed but what the edits and the traits of the model say
 * and what no provider would take. What the model cannot be asked for is added to `losses`.
 */
export function passRequest(
  call: Call,
  target: Target,
  reads: Reads,
  losses: Loss[],
  adaptation?: Adaptation,
): { readonly request: UpstreamRequest; readonly edits: MemberEdits; readonly usage: boolean } {
  const { codec, wire, stream } = call;
  const { body, usage, edits = {} } = passedBody(call, target, reads, losses, adaptation);
  const { path, query, headers } = codec.passThrough(target.model, stream, plainHeaders(call));
  const request: UpstreamRequest = {
    operation: call.operation,
    format: codec.format,
    model: target.model,
    stream,
    path,
    query: query ?? {},
    headers: headers ?? {},
    body: body ?? wire.bytes,
  };
  return { request, edits, usage };
}

interface PassedBody {
  readonly body: UpstreamRequest['body'] | undefined;
  readonly usage: boolean;
  readonly edits?: MemberEdits;
}

/** Returns the body as it passes. Undefined: the bytes go as they came. `edits` are still to be made in it. */
function passedBody(
  call: Call,
  target: Target,
  reads: Reads,
  losses: Loss[],
  adaptation: Adaptation | undefined,
): PassedBody {
  const { codec, edits, wire } = call;
  if (wire.params.form !== undefined)
    return { body: renamedForm(wire.params.form, target.model), usage: false };
  const named = call.body.model === call.askedModel;
  const asking = reads !== 'nothing' && call.stream && codec.askUsage !== undefined;
  const usageMembers = asking ? codec.askUsage?.(call.body) : undefined;
  const usage = usageMembers !== undefined;
  const added = edits.addedMembers === undefined ? usageMembers : { ...edits.addedMembers, ...usageMembers };
  // A count may name the model inside: only the format knows where.
  const inside = call.operation === 'count-tokens' && !named && target.model !== call.askedModel;
  const drop = losesInto(losses, call, codec);
  const official = (one: JsonObject): JsonObject => codec.official?.(one, target.traits, drop) ?? one;
  // Spread only when necessary, because reading all members of a long body parses it.
  const { body } = call;
  if (edits.settings === undefined && edits.body === undefined && !inside && official(body) === body) {
    addLosses(losses, adaptation);
    if (adaptation !== undefined) {
      const model = named && target.model !== body.model ? { model: target.model } : {};
      const changes = { ...model, ...absent(added, body), ...usageMembers, ...adaptation.edits };
      return { body: undefined, usage, edits: changes };
    }
    const spliced = splicedBody(call, named ? target.model : undefined, added);
    if (spliced !== undefined) return { body: spliced === wire.bytes ? undefined : spliced, usage };
  }
  const { reasoning, maxOutput } = edits.settings ?? {};
  const settings = {
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
  };
  const whole = added === undefined ? body : { ...edits.addedMembers, ...body, ...usageMembers };
  const patched = codec.patch(whole, { model: target.model, settings }, target.traits, drop);
  addLosses(losses, adaptation);
  const adapted = adaptation === undefined ? patched : withEdits(patched, adaptation.edits);
  return { body: JSON.stringify(official(adapted)), usage };
}

/** Returns the members to add of which the client has none. */
function absent(added: JsonObject | undefined, body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(added ?? {}).filter(([name]) => !Object.hasOwn(body, name)));
}

function addLosses(losses: Loss[], adaptation: Adaptation | undefined): void {
  for (const loss of adaptation?.losses ?? [])
    if (losses.every(({ path }) => path !== loss.path)) losses.push(loss);
}

/**
 * Returns the client's bytes with the model's name replaced and members added, all else as it was. Undefined where that cannot be done in the
 * bytes: the place of the name is not found, or a member of the client's has to change.
 */
function splicedBody(
  { body, wire }: Call,
  model: string | undefined,
  added: JsonObject | undefined,
): Buffer | undefined {
  const names = added === undefined ? [] : Object.keys(added);
  if (names.some((name) => Object.hasOwn(body, name))) return undefined;
  let { bytes } = wire;
  if (model !== undefined && model !== body.model) {
    const span = wire.outline?.model ?? findModel(bytes);
    if (span === undefined) return undefined;
    const name = Buffer.from(JSON.stringify(model));
    bytes = Buffer.concat([bytes.subarray(0, span.start), name, bytes.subarray(span.end)]);
  }
  if (names.length === 0) return bytes;
  const end = bytes.lastIndexOf('}');
  const members = names.map((name) => `,${JSON.stringify(name)}:${JSON.stringify(added?.[name])}`).join('');
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(members), bytes.subarray(end)]);
}

/** Returns the client's form with the model's name replaced; everything else keeps its place. */
function renamedForm(form: Form, model: string): Form {
  return form.map((part) => ('value' in part && part.name === 'model' ? { ...part, value: model } : part));
}
