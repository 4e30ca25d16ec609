/** Requests access tokens from OAuth 2.0 token endpoints, with secrets masked in errors and the log. */
import { hideSecret } from '../../log.ts';
import { parseObject } from '../../json/parse.ts';
import type { HttpClient } from '../../sdk/author/http.ts';
import type { AccessToken } from './access-tokens.ts';

/**
 * A token endpoint of OAuth 2.0.
 *
 * @example
 * const endpoint: TokenEndpoint = {
 *   name: 'Acme',
 *   url: tokenUrl,
 *   form: { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret },
 *   credentialName: 'the client secret',
 *   hint: 'Check "clientSecret".',
 * };
 */
export interface TokenEndpoint {
  /** Name of the server, for errors: `IBM Cloud IAM`. */
  readonly name: string;
  readonly url: string;
  /** Form that is posted. Its secrets appear in no error and no log line. */
  readonly form: Readonly<Record<string, string>>;
  /** The client's id and secret, where the server requires them in an `authorization` header. */
  readonly basic?: { readonly id: string; readonly secret: string };
  /** Name of the credential that is exchanged for a token, for errors: `the API key`. */
  readonly credentialName: string;
  /** Sentence at the end of errors that says what the operator can do. */
  readonly hint: string;
}

/** Lifetime in seconds of tokens without `expires_in`. */
const ordinaryLife = 20 * 60;

/**
 * Returns a function that requests an access token (RFC 6749, section 5.1), for `bearerTokens`. The function
 * rejects with an Error whose message is for the operator and holds no secret. Secrets of the form are masked in the log.
 *
 * @example
 * const ask = oauthTokens(http, {
 *   name: 'Acme', url: tokenUrl, credentialName: 'the client secret', hint: 'Check "clientSecret".',
 *   form: { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret },
 * });
 */
export function oauthTokens(
  http: Pick<HttpClient, 'read'>,
  endpoint: TokenEndpoint,
): () => Promise<AccessToken> {
  const { name: server, url, form, basic, credentialName, hint } = endpoint;
  const secrets = Object.entries(form).flatMap(([name, value]) =>
    /secret|apikey/.test(name) && value !== '' ? [value] : [],
  );
  const authorization = basic === undefined ? {} : { authorization: basicAuthorization(basic) };
  for (const secret of [...secrets, basic?.secret ?? '', authorization.authorization?.slice(6) ?? ''])
    hideSecret(secret);
  return async () => {
    const requestedAt = Date.now();
    try {
      const answer = await http.read({
        url,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
          ...authorization,
        },
        body: new URLSearchParams(form).toString(),
      });
      const {
        access_token: token,
        expires_in: life,
        token_type: type = 'Bearer',
      } = parseObject(answer.toString()) ?? {};
      if (typeof token !== 'string' || token === '') throw new Error('The response has no access_token.');
      // RFC 6749, section 7.1: a client must not use a token of a type that it does not know.
      if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
        throw new Error(
          `The token is of the type ${String(type).slice(0, 40)}, but only Bearer is supported.`,
        );
      const seconds = lifeOf(life);
      return { token, expiresAtMs: requestedAt + seconds * 1000, lifetimeMs: seconds * 1000 };
    } catch (error) {
      throw new Error(
        `${server} returned no access token for ${credentialName}: ${reasonOf(error).replace(/\.$/, '')}. ${hint}`,
        { cause: error },
      );
    }
  };
}

/** Returns the header of a client. Both halves are encoded as in a form before they are joined: RFC 6749, section 2.3.1. */
function basicAuthorization({ id, secret }: NonNullable<TokenEndpoint['basic']>): string {
  const [encodedId, encodedSecret] = [id, secret].map((half) =>
    new URLSearchParams({ '': half }).toString().slice(1),
  );
  return `Basic ${Buffer.from(`${encodedId}:${encodedSecret}`).toString('base64')}`;
}

/** Returns seconds. Some servers write the number as a text: https://learn.microsoft.com/entra/identity-platform/v1-protocols-oauth-code */
function lifeOf(life: unknown): number {
  const seconds = typeof life === 'string' && /^\d{1,12}$/.test(life) ? Number(life) : life;
  return typeof seconds === 'number' && seconds > 0 ? seconds : ordinaryLife;
}

/** Returns the message of an error, with the endpoint's own error code after the status: `invalid_client`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && /status/.test(message)
    ? `${message.replace(/\.$/, '')}: ${cause.message}`
    : message;
}
