import type { Logger } from '@opentelemetry/api';
import type { EndedCall } from './call-attributes.ts';
import type { Packages } from './packages.ts';
import type { TraceContexts } from './trace-context.ts';

/** Name of the event of a record. */
const eventName = 'sluice.call';

/** Returns a function that writes one log record for a call, with the ids of its trace, whether the trace is sampled or not. */
export function createLogWriter(
  logger: Logger,
  traces: TraceContexts,
  { api }: Packages,
): (ended: EndedCall) => void {
  return (ended) => {
    const { outcome, operation, call } = ended;
    const level = severityOf(ended);
    const attributes = ended.attributes();
    const model = attributes['gen_ai.request.model'] ?? '';
    logger.emit({
      eventName,
      severityNumber: api.SeverityNumber[level],
      severityText: level,
      body: `${operation} ${String(model)} ${outcome.status} in ${Math.round(outcome.times.totalMs)} ms`,
      attributes,
      context: api.trace.setSpanContext(api.ROOT_CONTEXT, traces.contextOf(call)),
    });
  };
}

function severityOf({ outcome: { status, ended } }: EndedCall): 'INFO' | 'WARN' | 'ERROR' {
  if (status >= 500 || ended === 'interrupted') return 'ERROR';
  return status >= 400 ? 'WARN' : 'INFO';
}
