/** Forwards the credentials of clients to the provider, for channels with `credentials: 'client'`. */
import { createHash } from 'node:crypto';
import type { Call } from '../sdk/call.ts';
import { clientCredentialOf, missingCredential, type ClientCredential } from '../sdk/client-credential.ts';
import type { ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import { toGatewayError } from '../sdk/errors.ts';
import { clientAnswer, isOfClient, ofClient } from '../upstream/credentials/client-answer.ts';
import { fillingIn, StandIn } from '../upstream/credentials/stand-in.ts';

/** Returns the tools of a channel whose requests show what each client has brought for the provider. */
export function withClientCredentials(tools: ChannelTools): ChannelTools {
  const standIn = new StandIn();
  const filled = fillingIn({ ...tools, keys: [standIn.key] }, standIn, (call) => {
    if (call === undefined) throw new Error('This channel has no credential of its own.');
    return credentialOf(call);
  });
  return {
    ...filled,
    http: {
      ...filled.http,
      send: async (call, request) =>
        clientAnswer(
          call,
          await filled.http.send(call, { ...request, headers: { ...request.headers, ...programOf(call) } }),
          credentialOf(call).value,
        ),
    },
    sockets: {
      ...filled.sockets,
      connect: (call, request) =>
        filled.sockets.connect(call, request).catch((thrown: unknown) => {
          const error = toGatewayError(thrown);
          throw isOfClient(error) ? ofClient(error, '') : error;
        }),
    },
  };
}

/** Returns the headers that name the client program, which the provider of an account may want to know. */
function programOf({ wire: { headers } }: Call): Readonly<Record<string, string>> {
  const { 'user-agent': agent, 'x-app': app } = headers;
  return {
    ...(agent === undefined ? {} : { 'user-agent': agent }),
    ...(typeof app === 'string' ? { 'x-app': app } : {}),
  };
}

function credentialOf(call: Call): ClientCredential {
  const own = clientCredentialOf(call);
  if (own === undefined) throw missingCredential(call.model);
  return own;
}

/** Returns the problem of options with `credentials: 'client'`, as the end of a sentence; undefined if there is none. */
export function credentialsProblem(
  { key, keys, discover, models }: ChannelOptions,
  identity: unknown,
): string | undefined {
  if ((key ?? '') !== '' || keys !== undefined || identity !== undefined)
    return 'option "credentials": \'client\' cannot be combined with key or identity. Remove them.';
  if (models === 'discover' || discover === true)
    return "option \"credentials\": 'client' leaves no credential for requesting the provider's model list. List the models: models: ['…'].";
  return undefined;
}

/** Names the provider that credentials are forwarded to: of channels with one name each may have what was brought for the other. */
export function forwardsTo(kind: string, { baseUrl = '' }: ChannelOptions): string {
  return createHash('sha256')
    .update(JSON.stringify([kind, baseUrl]))
    .digest('hex')
    .slice(0, 12);
}

/** Returns the parts without batches and videos, because the gateway polls them without a client, and so without a credential. */
export function withoutBackground(parts: ChannelParts): ChannelParts {
  const { keeps: _keeps, ...rest } = parts;
  const { 'create-video': _create, 'get-video': _get, ...speaks } = parts.speaks;
  return { ...rest, speaks };
}
