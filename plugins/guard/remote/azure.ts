/** Checks texts with Azure AI Content Safety (`kind: 'azure-content-safety'`). */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { answerOf, forEach, piecesOf, type Judge, type JudgeTools } from './judge.ts';

/** Options of `kind: 'azure-content-safety'`. */
export const azureOptions = {
  /** Endpoint of the resource: `https://NAME.cognitiveservices.azure.com`. */
  url: secretUrl(z.url()),
  apiKey: secret(z.string().min(1)),
  /** Categories that are looked for. Default: all four. */
  categories: z.array(z.enum(['Hate', 'SelfHarm', 'Sexual', 'Violence'])).optional(),
  /** Lowest severity that counts: 0, 2, 4 or 6. */
  severity: z.int().min(0).max(7).default(4),
  blocklists: z.array(z.string().min(1)).default([]),
  /** Ask Prompt Shields, too, whether a request attacks the model. */
  shieldPrompt: z.boolean().default(true),
};
const schema = z.object(azureOptions);

/** Characters of one request (service limits of both operations). */
const longestText = 10_000;
const version = 'api-version=2024-09-01';

const analyzed = z.object({
  categoriesAnalysis: z.array(z.object({ category: z.string(), severity: z.int().nullish() })),
  blocklistsMatch: z.array(z.object({ blocklistName: z.string() })).nullish(),
});
const shielded = z.object({
  userPromptAnalysis: z.object({ attackDetected: z.boolean() }).nullish(),
  documentsAnalysis: z.array(z.object({ attackDetected: z.boolean() })).nullish(),
});

/**
 * Azure AI Content Safety: `text:analyze` for harm, and `text:shieldPrompt` for attacks in what users and tools say, in pieces of 10,000
 * characters: `@azure-rest/ai-content-safety` 1.0.1, `AnalyzeTextOptions`; https://learn.microsoft.com/azure/ai-services/content-safety/quickstart-jailbreak.
 */
export function azure(options: z.output<typeof schema>, { http, timeout }: JudgeTools): Judge {
  const { url: endpoint, apiKey, categories, severity, blocklists, shieldPrompt } = options;
  const request = async (
    operation: string,
    json: Record<string, string | string[]>,
    signal: AbortSignal | undefined,
  ) => {
    const url = `${endpoint.replace(/\/$/, '')}/contentsafety/text:${operation}?${version}`;
    const headers = { 'ocp-apim-subscription-key': apiKey };
    return answerOf('Azure AI Content Safety', await http.ask({ url, headers, json, timeout, signal }));
  };
  return async ({ side, texts, signal }) => {
    const pieces = texts.flatMap(({ text, role }) =>
      piecesOf(text, longestText)
        .filter((piece) => piece.trim() !== '')
        .map((piece) => ({ piece, role })),
    );
    const reasons = await forEach(pieces, async ({ piece, role }) => {
      const json = {
        text: piece,
        ...(categories === undefined ? {} : { categories }),
        ...(blocklists.length === 0 ? {} : { blocklistNames: blocklists }),
      };
      const asksShield = shieldPrompt && side === 'request' && (role === 'user' || role === 'tool');
      const prompt =
        role === 'user' ? { userPrompt: piece, documents: [] } : { userPrompt: '', documents: [piece] };
      const [analysis, shield] = await Promise.all([
        request('analyze', json, signal),
        asksShield ? request('shieldPrompt', prompt, signal) : undefined,
      ]);
      return [
        ...harmIn(analyzed.parse(analysis), severity),
        ...(shield === undefined ? [] : attackIn(shield)),
      ];
    });
    const all = [...new Set(reasons.flat())];
    return { flagged: all.length > 0, reasons: all };
  };
}

function harmIn(
  { categoriesAnalysis, blocklistsMatch }: z.output<typeof analyzed>,
  severity: number,
): string[] {
  const harm = categoriesAnalysis
    .filter((one) => (one.severity ?? 0) >= severity)
    .map(({ category }) => category);
  return [...harm, ...(blocklistsMatch ?? []).map(({ blocklistName }) => `blocklist:${blocklistName}`)];
}

function attackIn(answer: unknown): string[] {
  const { userPromptAnalysis, documentsAnalysis } = shielded.parse(answer);
  const isAttack =
    userPromptAnalysis?.attackDetected === true ||
    (documentsAnalysis ?? []).some(({ attackDetected }) => attackDetected);
  return isAttack ? ['PromptAttack'] : [];
}
