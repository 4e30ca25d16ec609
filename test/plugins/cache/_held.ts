import { onTestFinished } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import type { CacheOptions } from '../../../plugins/cache/options.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { Tap } from './_calls.ts';
import { startProvider, type Does, type Provider } from './_provider.ts';

/** A gateway with the cache before one provider. `taps` are the streams that the test writes. */
export async function startedByHand(
  options: Partial<CacheOptions> = {},
  does: Does = () => 'by itself',
): Promise<{ gateway: TestGateway; provider: Provider; taps: Tap[] }> {
  const taps: Tap[] = [];
  const provider = await startProvider('chat-completions', does, (response) => taps.push(new Tap(response)));
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    plugins: [cache(options)],
    channels: [provider.channel],
    // A busy machine refuses no call.
    overload: { lag: 600_000 },
  });
  onTestFinished(() => gateway.close());
  return { gateway, provider, taps };
}

/** Waits until so many calls run. */
export async function running(gateway: TestGateway, count: number): Promise<void> {
  await eventually(async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return text.includes(`\nsluice_running_calls ${count}\n`);
  });
}
