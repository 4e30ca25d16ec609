import { definePlugin } from 'sluice';
import { options } from './options.ts';

/**
 * Sends traces, metrics and logs of calls to an OTLP receiver, with OpenTelemetry's own packages and the GenAI semantic conventions.
 * Clients notice nothing, because the data is created after a call has ended. Data that the receiver does not accept in time is dropped and
 * counted.
 */
export default definePlugin({
  name: 'telemetry',
  stage: 'observe',
  whenListed: true,
  reads: ({ content }) => (content === 'full' ? 'content' : 'usage'),
  options,
  // The rest is loaded where it is wanted.
  async setup(chosen, tools) {
    const { startTelemetry } = await import('./handler.ts');
    return startTelemetry(chosen, tools);
  },
});
