/** Selects how the requests of a channel are authorized: by its keys, by an OAuth 2.0 identity, or by the credentials of clients. */
import type { ChannelOptions, ChannelParts, ChannelTools } from '../sdk/define.ts';
import type { Settings } from '../settings/index.ts';
import { withIdentity } from './channel-identity.ts';
import { oauth2IdentityOf } from './channel-options.ts';
import { credentialsProblem, withClientCredentials, withoutBackground } from './client-credentials.ts';

/** Authorization of the requests of a channel by its options. */
export interface Authorization {
  /** Problem of the options, as the end of a sentence; undefined if there is none. */
  readonly problem: string | undefined;
  /** Its requests carry the credentials of clients. */
  readonly isForwarding: boolean;
  /** False where an identity or the clients stand in for a key. */
  readonly needsKey: boolean;
  /** Options for the kind. `tools` returns tools that authorize its requests. */
  readonly options: ChannelOptions;
  tools(own: ChannelTools): ChannelTools;
  /** Returns the parts of the kind that the channel supports. */
  parts(made: ChannelParts): ChannelParts;
}

/** Returns the authorization that the options of an entry select. `wanted` are the models that the channel serves. */
export function authorizationOf(
  options: ChannelOptions & Readonly<Record<string, unknown>>,
  wanted: ChannelOptions['models'],
  timeouts: Settings['timeouts'],
): Authorization {
  if (options['credentials'] === 'client')
    return {
      problem: credentialsProblem(
        { ...options, ...(wanted === undefined ? {} : { models: wanted }) },
        options['identity'],
      ),
      isForwarding: true,
      needsKey: false,
      options: without(options, 'credentials'),
      tools: withClientCredentials,
      parts: withoutBackground,
    };
  const identity = oauth2IdentityOf(options);
  return {
    problem: undefined,
    isForwarding: false,
    needsKey: identity === undefined,
    options: identity === undefined ? options : without(options, 'identity'),
    tools: (own) => (identity === undefined ? own : withIdentity(own, identity, options, timeouts)),
    parts: (made) => made,
  };
}

function without(options: ChannelOptions, name: string): ChannelOptions {
  return { ...options, [name]: undefined };
}
