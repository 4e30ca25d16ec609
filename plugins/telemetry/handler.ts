/** Records spans, metrics and log records of each call, and exports them. */
import {
  addUpstreamHeaders,
  observe,
  type Call,
  type CallOutcome,
  type Handler,
  type Operation,
  type PluginTools,
} from 'sluice';
import { endedCall } from './call-attributes.ts';
import { Channels } from './channels.ts';
import { Instruments } from './instruments.ts';
import { createLogWriter } from './log-records.ts';
import type { TelemetryOptions } from './options.ts';
import { loadPackages } from './packages.ts';
import { createRedactor } from './redact.ts';
import { ReplyFacts } from './reply-facts.ts';
import { startSdk } from './sdk.ts';
import { pluginTimes, SpanWriter } from './spans.ts';
import { TraceContexts } from './trace-context.ts';

/** Operations that are not recorded, because they are frequent, cost nothing and reach no provider. */
const unrecorded: ReadonlySet<Operation> = new Set<Operation>(['list-models', 'state']);

/** Duration in milliseconds below which a plugin gets no span of its own. */
const shortestPlugin = 0.5;

/** Starts to send, and returns what is done with each call. */
export async function startTelemetry(chosen: TelemetryOptions, tools: PluginTools): Promise<Handler> {
  const packages = await loadPackages();
  const sdk = startSdk(chosen, packages, tools);
  tools.onClose(() => sdk.close());
  const channels = new Channels(tools.catalog);
  const traces = new TraceContexts(packages, chosen.sampling);
  const redact = createRedactor(chosen.redact);
  const { spans: processor, logger, meter, resource } = sdk;
  const spans =
    processor === undefined
      ? undefined
      : new SpanWriter({ processor, resource, traces, packages, options: chosen, redact });
  const log = logger === undefined ? undefined : createLogWriter(logger, traces, packages);
  const instruments = meter === undefined ? undefined : new Instruments(meter, channels, sdk.losses);

  const forward = new Set(chosen.forward);
  const forwardsTo = (channel: string): boolean => forward.has('*') || forward.has(channel);
  const maxText = chosen.content === 'full' ? chosen.maxBytes : undefined;
  if (chosen.pluginSpans)
    tools.watchPlugins((call, time) => {
      if (time.endedAt - time.startedAt < shortestPlugin) return;
      const times = call.get(pluginTimes);
      if (times === undefined) call.set(pluginTimes, [time]);
      else if (times.length < 100) times.push(time);
    });

  const record = (call: Call, outcome: CallOutcome, reply: ReplyFacts | undefined): void => {
    const ended = endedCall(call, outcome, reply, channels, chosen.content, redact);
    instruments?.record(ended);
    spans?.write(ended);
    log?.(ended);
  };

  return function telemetry(call, next) {
    if (unrecorded.has(call.operation)) return next(call);
    if (forward.size > 0)
      addUpstreamHeaders(call, (target) =>
        forwardsTo(target.channel.id) ? traces.headersFor(call, target) : undefined,
      );
    const reply = call.operation === 'chat' ? new ReplyFacts(call.format.name, maxText) : undefined;
    call.onOutcome((outcome) => record(call, outcome, reply));
    return reply === undefined ? next(call) : next(call).then(observe(reply));
  };
}
