/**
 * Uses of paid services and service tiers: the maximum that a request may use, limits that are added to requests, and the uses that a response
 * shows.
 */
import { paidMembers, type PaidMember } from '../_find-paid-members.ts';
import {
  isObject,
  formatFor,
  type GatewayEvent,
  type JsonObject,
  type JsonValue,
  type Units,
  WholeBytes,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { tierIn } from '../_hosted-tools.ts';
import { type Call, type Target } from 'sluice/internal';
import type { CallEdits } from './core-types.ts';
import { toolCallLimit } from '../_paid-members.ts';

/** Uses of services, by their names. */
export type Services = NonNullable<Units['services']>;

/** Services of which a call has one use at most. */
const usedOnce = new Set(['code-container']);

/** Format of a request, and members that are added to it. */
interface RequestFormat {
  /** Format of the request. */
  readonly format: string;
  /** Members that are sent beside those of its body. */
  readonly added?: JsonObject | undefined;
}

/** Returns the maximum number of uses of each service that a request may make. `assumed` stands for a limit that it does not state. */
export function servicesOf(
  body: JsonObject,
  assumed: number,
  { format, added }: RequestFormat,
): Services | undefined {
  const uses: Record<string, number> = {};
  const total = toolCallLimit(body, format) ?? toolCallLimit(added ?? {}, format);
  for (const { kind, service, path, maxUses } of paidMembers(body)) {
    if (kind !== 'service' || service === undefined) continue;
    const isOnce = usedOnce.has(service) || path === 'web_search_options';
    const own = isOnce ? 1 : Math.min(maxUses ?? Infinity, total ?? Infinity);
    uses[service] = (uses[service] ?? 0) + (Number.isFinite(own) ? own : assumed);
  }
  return Object.keys(uses).length === 0 ? undefined : uses;
}

/** Returns the service tier of a call with prices of its own that a request asks for, and where it does. */
export function tierOf(body: JsonObject): { readonly tier: string; readonly path: string } | undefined {
  const { tier, path } = paidMembers(body).find(({ kind }) => kind === 'tier') ?? {};
  return tier === undefined || path === undefined ? undefined : { tier, path };
}

/**
 * Returns the service tier that a call was sent with, for providers that do not tell which one they used. `format`: the one that the provider
 * was asked in, which has no member for the modes of others; `own`: the client's.
 */
export function sentTier(body: JsonObject, own: string, format: string | undefined): string | undefined {
  const { service_tier: tier = body['serviceTier'], speed } = body;
  if (speed === 'fast' && (format ?? own) === own) return speed;
  return typeof tier === 'string' || isObject(tier) ? tierIn(tier).slice(0, longestTier) : undefined;
}

const longestTier = 40;

/** Returns the members of a body that {@link sentTier} reads. */
export function tierMembers({ service_tier, serviceTier, speed }: JsonObject): JsonObject {
  return {
    ...(service_tier === undefined ? {} : { service_tier }),
    ...(serviceTier === undefined ? {} : { serviceTier }),
    ...(speed === undefined ? {} : { speed }),
  };
}

/**
 * Returns the edits by which a request has a limit of uses where it has none and its format has a member for it: `max_tool_calls` of responses,
 * `max_uses` of the searches of messages. Returns undefined where nothing is to be limited, or a channel would be asked in another format, which
 * may have no such limit: then, and in generateContent and chat completions, the assumed number of uses is reserved and not enforced.
 */
export function limitEdits(
  call: Call,
  targets: readonly Target[],
  limit: number,
): Pick<CallEdits, 'body' | 'addedMembers'> | undefined {
  const { format } = call.codec;
  if (call.operation !== 'chat' || (format !== 'responses' && format !== 'messages')) return undefined;
  const members = paidMembers(call.bodyOutline).filter(({ kind }) => kind === 'service');
  if (members.length === 0 || targets.some((target) => formatFor(call, target) !== format)) return undefined;
  // Added in the bytes: agents send long bodies with such tools all the time.
  if (format === 'responses') {
    if (toolCallLimit(call.bodyOutline, format) !== undefined) return undefined;
    // A member of the body, such as a limit of null, is sent in place of an added one.
    return call.bodyOutline['max_tool_calls'] === undefined
      ? { addedMembers: { max_tool_calls: limit } }
      : { body: { ...call.body, max_tool_calls: limit } };
  }
  const open = members.filter(({ service, maxUses }) => service === 'web-search' && maxUses === undefined);
  if (open.length === 0) return undefined;
  return { body: open.reduce((limited, one) => withMaxUses(limited, one, limit), call.body) };
}

function withMaxUses(body: JsonObject, { path }: PaidMember, limit: number): JsonObject {
  const names = path.split(/[.[\]]+/).filter((name) => name !== '');
  return changed(body, names, limit) as JsonObject;
}

/** Returns a value with a limit in the object at the end of a path. */
function changed(value: JsonValue, [name, ...rest]: readonly string[], limit: number): JsonValue {
  if (name === undefined) return { ...(value as JsonObject), max_uses: limit };
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).map((one, index) =>
      String(index) === name ? changed(one, rest, limit) : one,
    );
  const object = value as JsonObject;
  return { ...object, [name]: changed(object[name] ?? {}, rest, limit) };
}

/** Texts in frames that show one use of a service. */
const signs: readonly (readonly [service: string, sign: RegExp])[] = [
  ['web-search', /"type"\s*:\s*"(?:web_search_call|server_tool_use)"|"webSearchQueries"/g],
  ['x-search', /"type"\s*:\s*"x_search_call"/g],
  ['file-search', /"type"\s*:\s*"file_search_call"/g],
  ['image-generation', /"type"\s*:\s*"image_generation_call"/g],
];

/** Maximum length of a whole reply that is read for its uses of services, in bytes. Of a longer one what was reserved is charged. */
const maxWhole = 4 * 1024 * 1024;

/** Counts the uses of services in a response that may end before the provider reports them. */
export class ServiceMeter {
  readonly #requested: Services;
  readonly #codec: Codec;
  readonly #seen = new Map<string, number>();
  /** A whole reply that passes: its items are read when it has ended. */
  readonly #whole = new WholeBytes();
  #wholeBytes = 0;

  /** `requested`: the maximum number of uses of each service. `codec` reads replies that pass through. */
  constructor(requested: Services, codec: Codec) {
    this.#requested = requested;
    this.#codec = codec;
  }

  event(event: GatewayEvent): void {
    if (event.type === 'bytes') {
      this.#wholeBytes += event.bytes.length;
      if (this.#wholeBytes <= maxWhole) this.#whole.push(event.bytes);
      else this.#whole.take();
    } else if (event.type === 'frames') {
      const text = event.bytes.toString('latin1');
      for (const [service, sign] of signs)
        if (this.#requested[service] !== undefined) this.#see(service, text.match(sign)?.length ?? 0);
    } else if (event.type === 'opaque' || event.type === 'media-start')
      for (const service in this.#requested) this.#see(service, 1);
  }

  #see(service: string, uses: number): void {
    if (uses > 0) this.#seen.set(service, (this.#seen.get(service) ?? 0) + uses);
  }

  /** Reads a complete response that passed through. Returns undefined where there was none, `unread` where it was too long. */
  #readWhole(): Services | 'unread' | undefined {
    if (this.#wholeBytes > maxWhole) return 'unread';
    if (this.#wholeBytes === 0) return undefined;
    return this.#codec.usageTap().read(this.#whole.take().toString())?.units?.services;
  }

  /**
   * Returns the uses to charge: those that the provider told in `format`. Of a service that the format does not tell it is the number that was
   * reserved, and of a reply that was cut off those that were seen, and one that may have been running.
   */
  used(reported: Services | undefined, isComplete: boolean, format: string | undefined): Services {
    const byWhole = isComplete ? this.#readWhole() : undefined;
    const used: Record<string, number> = { ...reported, ...(byWhole === 'unread' ? {} : byWhole) };
    const counted = byWhole === 'unread' ? undefined : countedIn[format ?? ''];
    for (const [service, most] of Object.entries(this.#requested)) {
      if (isComplete) used[service] ??= counted?.has(service) === true ? 0 : most;
      else used[service] = Math.max(used[service] ?? 0, Math.min(most, (this.#seen.get(service) ?? 0) + 1));
    }
    return Object.fromEntries(Object.entries(used).filter(([, uses]) => uses > 0));
  }
}

/** Services whose uses a complete response reports, by the format of the provider. */
const countedIn: Readonly<Record<string, ReadonlySet<string> | undefined>> = {
  responses: new Set(['web-search', 'x-search', 'file-search', 'code-container', 'image-generation']),
  messages: new Set(['web-search']),
  'generate-content': new Set(['web-search']),
};
