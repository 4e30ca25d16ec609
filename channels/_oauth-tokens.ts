import type { HttpClient } from 'sluice';
import { hideSecret, parseObject } from 'sluice/internal';
import type { AccessToken } from './_access-tokens.ts';

/** A place that gives out tokens for a form, as OAuth 2.0 has it. */
export interface TokenPlace {
  /** Who is asked, for the sentence about a failure: `IBM Cloud IAM`. */
  readonly who: string;
  readonly url: string;
  /** What is posted; the secret among it stands in no sentence and no line of the log. */
  readonly form: Readonly<Record<string, string>>;
  /** What the form shows: `the API key`. */
  readonly shown: string;
  /** What an operator can do about a refusal. */
  readonly advice: string;
}

/** For tokens that do not say how long they are good. */
const ordinaryLife = 20 * 60;

/** Asks a place for access tokens (RFC 6749, section 5.1). Rejects with a sentence for the operator. */
export function oauthTokens(http: HttpClient, place: TokenPlace): () => Promise<AccessToken> {
  const { who, url, form, shown, advice } = place;
  const secrets = Object.entries(form).flatMap(([name, value]) =>
    /secret|apikey/.test(name) && value !== '' ? [value] : [],
  );
  for (const secret of secrets) hideSecret(secret);
  return async () => {
    const asked = Date.now();
    try {
      const answer = await http.read({
        url,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams(form).toString(),
      });
      const { access_token: token, expires_in: life } = parseObject(answer.toString()) ?? {};
      if (typeof token !== 'string' || token === '') throw new Error('The answer has no access_token in it.');
      const seconds = typeof life === 'number' && life > 0 ? life : ordinaryLife;
      return { token, expires: asked + seconds * 1000 };
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
      throw new Error(`${who} gave no access token for ${shown}: ${reason}. ${advice}`, { cause: error });
    }
  };
}
