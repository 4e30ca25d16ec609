/** Checks texts with Google Model Armor (`kind: 'model-armor'`). */
import { z } from 'zod';
import { requirePackage, secret, secretUrl } from 'sluice';
import { answerOf, forEach, type Judge, type JudgeTools } from './judge.ts';

/** Options of `kind: 'model-armor'`. */
export const modelArmorOptions = {
  project: z.string().min(1),
  location: z.string().min(1),
  template: z.string().min(1),
  /** An access token. Default: Google's own search for credentials, for which `google-auth-library` must be installed. */
  token: secret(z.string().min(1)).optional(),
  /** Address in place of the location's. */
  url: secretUrl(z.url()).optional(),
};
const schema = z.object(modelArmorOptions);

const answered = z.object({
  sanitizationResult: z.object({
    filterMatchState: z.string(),
    invocationResult: z.string().optional(),
    filterResults: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
  }),
});

/**
 * Google Model Armor: `templates.sanitizeUserPrompt` and `templates.sanitizeModelResponse`
 * (`@google-cloud/modelarmor` 0.6.0, `SanitizationResult`). A filter that could not run counts as no answer.
 */
export function modelArmor(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { project, location, template, url } = options;
  const origin = (url ?? `https://modelarmor.${location}.rep.googleapis.com`).replace(/\/$/, '');
  const name = `projects/${project}/locations/${location}/templates/${template}`;
  const tokenOf = options.token === undefined ? googleToken() : () => Promise.resolve(options.token);
  return async ({ side, texts, signal }) => {
    const authorization = `Bearer ${await tokenOf()}`;
    const reasons = await forEach(
      texts.filter(({ text }) => text.trim() !== ''),
      async ({ text }) => {
        const answer = await http.ask({
          url: `${origin}/v1/${name}:${side === 'request' ? 'sanitizeUserPrompt' : 'sanitizeModelResponse'}`,
          headers: { authorization },
          json: side === 'request' ? { userPromptData: { text } } : { modelResponseData: { text } },
          timeout,
          signal,
        });
        const { sanitizationResult: result } = answered.parse(answerOf('Model Armor', answer));
        const { invocationResult = 'SUCCESS', filterMatchState: state } = result;
        if (state === 'MATCH_FOUND') return matchedFilters(result.filterResults ?? {});
        if (state !== 'NO_MATCH_FOUND' || invocationResult !== 'SUCCESS')
          throw new Error(`Model Armor did not run all filters: ${invocationResult}.`);
        return [];
      },
    );
    const all = [...new Set(reasons.flat())];
    return { flagged: all.length > 0, reasons: all };
  };
}

function matchedFilters(results: Readonly<Record<string, unknown>>): readonly string[] {
  const matched = Object.entries(results).filter(([, result]) =>
    JSON.stringify(result).includes('"MATCH_FOUND"'),
  );
  return matched.length === 0 ? ['matched'] : matched.map(([name]) => name);
}

/** Returns a function that gets a token from Google's library, which keeps and renews it. */
function googleToken(): () => Promise<string> {
  requirePackage('google-auth-library', '11', 'ask Model Armor without a token');
  let auth: Promise<{ getAccessToken(): Promise<string | null | undefined> }> | undefined;
  return async () => {
    auth ??= import('google-auth-library').then(
      ({ GoogleAuth }) => new GoogleAuth({ scopes: ['https://www.googleapis.com/auth/cloud-platform'] }),
    );
    const token = await (await auth).getAccessToken();
    if (typeof token !== 'string') throw new Error('Google returned no access token.');
    return token;
  };
}
