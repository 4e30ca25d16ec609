import { concatMap, defer, finalize, merge, Subject, type Observable } from 'rxjs';
import {
  GatewayError,
  startWithEvents,
  sumUsage,
  checkMessages,
  type GatewayEvent,
  type Usage,
  type UpstreamRequest,
  type AttemptEvent,
} from 'sluice';
import type { SocketMessage } from 'sluice/channel-kit';
import {
  addressesIn,
  mayNameAddress,
  refusedAddress,
  tunnelWatch,
  type Call,
  type Next,
  type Target,
} from 'sluice/internal';

/**
 * Passes a session through to the target: both sides' messages as they are, but for the name of the model. What the answers in it use is
 * told by `usage` events, each before the message that it was read from.
 */
export function passSocket(call: Call, target: Target, next: Next): Promise<Observable<GatewayEvent>> {
  // The names in a message depend on the channel, which is only known here.
  return checkMessages(call, (checked) => passMessages(checked, target, next), {
    concerns: mayNameAddress,
    check(event) {
      const refused = refusedAddress(addressesIn(event), target.channel);
      if (refused !== undefined) throw refused;
    },
    failure: 'The addresses that this message names cannot be checked now.',
  });
}

async function passMessages(call: Call, target: Target, next: Next): Promise<Observable<GatewayEvent>> {
  const { format, operation } = call;
  const route = format.tunnels?.find((one) => one.path === call.wire.path);
  const formats = target.channel.speaks[operation];
  if (route === undefined || formats?.includes(format.name) !== true) {
    throw new GatewayError(
      'endpoint_not_supported',
      `The channel for this model does not support ${call.wire.path}.`,
      { param: 'model' },
    );
  }
  const names = route.names(call.askedModel, target.model);
  const watch = target.channel.watch?.(route.watch()) ?? route.watch();

  const { path, query = {}, headers = {} } = route.dial(call.body, target.model, flat(call.wire.headers));
  const upstream: UpstreamRequest = {
    operation,
    format: format.name,
    model: target.model,
    stream: true,
    path,
    query,
    headers,
    method: 'GET',
    body: '',
  };

  let total: Usage | undefined;
  const used = (part: Usage): GatewayEvent => {
    total = total === undefined ? part : sumUsage(total, part);
    return { type: 'usage', usage: total, part };
  };

  /** Errors that the gateway itself has for the client, and what the client's own messages cost. */
  const own = new Subject<GatewayEvent>();
  const input = call.input?.pipe(
    concatMap((message): SocketMessage[] => {
      const sent = names.toProvider(message);
      if (!(sent instanceof GatewayError)) {
        const part = watch.sent?.(sent);
        if (part !== undefined) own.next(used(part));
        return [sent];
      }
      own.next({ type: 'message', data: Buffer.from(route.failure(sent, call.id)), binary: false });
      holdClient(call);
      return [];
    }),
  );

  const read = (event: Extract<GatewayEvent, { type: 'message' }>): GatewayEvent[] => {
    const part = watch.read(event);
    const named = names.toClient(event);
    const shown: GatewayEvent = named === event ? event : { type: 'message', ...named };
    return part === undefined ? [shown] : [used(part), shown];
  };

  const source = await next(call.with({ upstream, ...(input === undefined ? {} : { input }) }));
  // Set on subscription, because of several attempts only the one whose response is used counts.
  const provider = defer(() => {
    call.set(tunnelWatch, watch);
    return source;
  }).pipe(
    concatMap((event) => (event.type === 'message' ? read(event) : [event])),
    finalize(() => own.complete()),
  );
  const attempt: AttemptEvent = {
    type: 'attempt',
    channel: target.channel.id,
    model: target.model,
    format: format.name,
    passThrough: true,
  };
  return startWithEvents([attempt], merge(provider, own));
}

/** Stops reading from a client that does not read its responses, because they would accumulate. */
function holdClient({ gate, inputGate }: Call): void {
  const opened = gate.opened();
  if (opened === undefined) return;
  inputGate.close();
  void opened.then(() => inputGate.open());
}

/** Returns the headers with one value each. */
function flat(headers: Call['wire']['headers']): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
