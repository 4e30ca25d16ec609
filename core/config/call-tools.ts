/** Tools that are alike for all plugins of a gateway. */
import { createRequestAddress } from '../front/client-address.ts';
import { createFailureReports } from '../routing/report-failure.ts';
import { isSingleChoice } from '../routing/target.ts';
import type { Format } from '../sdk/format.ts';
import type { Health } from '../sdk/health.ts';
import type { Notices } from '../sdk/notices.ts';
import { openSealer } from '../state/sealer.ts';
import type { Settings } from '../settings/index.ts';
import type { Stores } from '../state/stores.ts';
import type { InternalTools } from './internal-tools.ts';

/** The parts of a gateway from which {@link createCallTools} makes tools. */
export interface CallToolParts {
  readonly stores: Stores;
  readonly health: Health;
  readonly notices: Notices;
  readonly settings: Pick<Settings, 'trustedProxies'>;
  readonly onClose: InternalTools['onClose'];
}

/** Returns the tools that are alike for all plugins of a gateway. */
export function createCallTools(
  format: (name: string) => Format | undefined,
  { stores, health, notices, settings, onClose }: CallToolParts,
): Pick<
  InternalTools,
  | 'openSealer'
  | 'chatCodec'
  | 'isSingleChoice'
  | 'reportFailure'
  | 'reportRefusal'
  | 'clientAddress'
  | 'onNotice'
  | 'onModelsChanged'
> {
  return {
    openSealer: () => openSealer(stores),
    chatCodec: (name) => format(name)?.codecs.chat,
    isSingleChoice: (call, target) => isSingleChoice(call, target, format),
    reportRefusal: ({ channel, model }) => notices.emit('refusal-learned', { channel: channel.id, model }),
    reportFailure: createFailureReports(health, notices),
    clientAddress: createRequestAddress(settings.trustedProxies),
    onNotice: (name, job) => onClose(notices.on(name, job as () => void)),
    onModelsChanged: (job) => onClose(notices.on('models-changed', job)),
  };
}
