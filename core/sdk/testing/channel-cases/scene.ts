/** Setup of each test case of a channel: starts a gateway with the channel and a fake provider behind it, runs the case, and closes both. */
import assert from 'node:assert/strict';
import { tryOut, type Trial } from '../../../conformance/index.ts';
import type { JsonObject } from '../../../model/json.ts';
import { startGateway, type TestGateway } from '../gateway.ts';
import { respondWith, scriptFor } from '../accepting-provider.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../provider.ts';
import { formatVoice, type ReceivedRequest } from '../voice.ts';
import { listed, perform, type ProviderAction } from './provider-actions.ts';
import type { ChannelCase, ChannelUnderTest } from './tested.ts';

/** The channel's key, which only its provider may receive. */
export const key = 'test-key-0123456789abcdef';

/** A gateway with the channel, and the provider behind it. */
export interface Scene {
  readonly gateway: TestGateway;
  readonly provider: ScriptedUpstream;
  /** Returns the provider's last request, decoded. */
  received(): ReceivedRequest;
  /** Sends a chat completion request to the gateway, with the message "Hello" unless the body has others. */
  request(body: JsonObject, signal?: AbortSignal): Promise<Response>;
}

/** Makes a case from the scripted response of the provider and the assertions. */
export type MakeCase = (
  name: string,
  action: ProviderAction,
  run: (scene: Scene) => Promise<void>,
) => ChannelCase;

/** Default model and format of the requests. */
const ordinary = { model: 'test-model', format: 'chat-completions' } as const;

/** Returns the function that makes cases of a channel. Each case has a provider and a gateway of its own. */
export function caseMaker(tested: ChannelUnderTest): MakeCase {
  const { model, format } = { ...ordinary, ...tested };
  return (name, action, run) => ({
    name,
    async run() {
      const voice = tested.voice ?? (await formatVoice(format));
      const provider = await startUpstream((request, response) =>
        listed(tested, request, response) ? undefined : perform(action, voice, request, response),
      );
      const gateway = await startGateway({
        channels: [tested.channel({ url: provider.url, key })],
        routing: { attempts: 1 },
      });
      try {
        await run({
          gateway,
          provider,
          received: () => voice.hear(lastPost(provider)),
          request: (body, signal) =>
            fetch(`${gateway.url}/v1/chat/completions`, {
              method: 'POST',
              headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
              body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], ...body }),
              ...(signal === undefined ? {} : { signal }),
            }),
        });
      } finally {
        await gateway.close();
        await provider.close();
      }
    },
  });
}

/** Makes a case from a trial of `sluice check --live`, against a fake provider that supports everything. */
export function trialCase(tested: ChannelUnderTest, trial: Trial): ChannelCase {
  const { model, format } = { ...ordinary, ...tested };
  return {
    name: `holds what is asked of providers live: ${trial.name}`,
    async run() {
      const voice = tested.voice ?? (await formatVoice(format));
      const provider = await startUpstream((request, response) =>
        listed(tested, request, response) ? undefined : respondWith(voice, request, response, scriptFor),
      );
      const { kind, spec, options } = tested.channel({ url: provider.url, key });
      const stranger = 'sluice-no-such-model';
      const models = { [model]: model, [stranger]: stranger };
      const gateway = await startGateway({
        channels: [{ kind, spec, options: { ...options, models } }],
        routing: { attempts: 1 },
      });
      try {
        const target = { url: gateway.url, key: gateway.key, model, stranger, format };
        const { result, remark } = await tryOut(trial, target);
        assert.equal(result, 'holds', remark);
      } finally {
        await gateway.close();
        await provider.close();
      }
    },
  };
}

/** Returns the last POST request of the provider. */
export function lastPost({ requests }: ScriptedUpstream): SeenRequest {
  const request = requests.findLast(({ method }) => method === 'POST');
  assert.ok(request !== undefined, 'the provider was asked nothing');
  return request;
}
