import { createHmac } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { startUpstream, type ScriptedUpstream } from 'sluice/testing';
import { z } from 'zod';

/*
 * The services as far as the guard asks them. Each refuses what the real one refuses: a wrong path, a missing or wrong credential, a member
 * that its API does not have, a text that is too long. A text with "bomb" is bad; "ada@example.org" and "Ada" are personal data.
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type Answer = { readonly status: number; readonly body: unknown };

interface ServiceRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly json: unknown;
  readonly raw: string;
}

const bad = (text: string): boolean => text.includes('bomb');
const ok = (body: unknown): Answer => ({ status: 200, body });

async function serve(answer: (request: ServiceRequest) => Answer): Promise<ScriptedUpstream> {
  const upstream = await startUpstream(({ method, url, headers, body }, response) => {
    const raw = body.toString();
    let answered: Answer;
    try {
      answered =
        method === 'POST' && headers['content-type'] === 'application/json'
          ? answer({ path: url, headers, json: JSON.parse(raw), raw })
          : { status: 405, body: {} };
    } catch (error) {
      answered = { status: 400, body: { error: String(error) } };
    }
    response.writeHead(answered.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answered.body));
  });
  onTestFinished(() => upstream.close());
  return upstream;
}

const bearer = (headers: Headers, token: string): boolean => headers.authorization === `Bearer ${token}`;

/** Amazon Bedrock: ApplyGuardrail. */
export function bedrockService(): Promise<ScriptedUpstream> {
  const shape = z.strictObject({
    source: z.enum(['INPUT', 'OUTPUT']),
    content: z
      .array(
        z.strictObject({
          text: z.strictObject({ text: z.string().min(1), qualifiers: z.array(z.string()).optional() }),
        }),
      )
      .min(1),
    outputScope: z.enum(['INTERVENTIONS', 'FULL']).optional(),
  });
  return serve(({ path, headers, json }) => {
    if (path !== '/guardrail/gr-1/version/2/apply')
      return { status: 404, body: { message: 'The guardrail does not exist.' } };
    if (!bearer(headers, 'bedrock-key')) return { status: 403, body: { message: 'Bearer Token is invalid' } };
    const texts = shape.parse(json).content.map(({ text }) => text.text);
    const pii = texts.some((text) => text.includes('ada@example.org'));
    const topic = texts.some(bad);
    if (!pii && !topic) return ok({ usage: {}, action: 'NONE', outputs: [], assessments: [{}] });
    return ok({
      usage: {},
      action: 'GUARDRAIL_INTERVENED',
      outputs: [{ text: 'masked' }],
      assessments: [
        {
          ...(topic
            ? { topicPolicy: { topics: [{ name: 'weapons', type: 'DENY', action: 'BLOCKED' }] } }
            : {}),
          ...(pii
            ? {
                sensitiveInformationPolicy: {
                  piiEntities: [{ match: 'ada@example.org', type: 'EMAIL', action: 'ANONYMIZED' }],
                  regexes: [],
                },
              }
            : {}),
        },
      ],
    });
  });
}

/** Azure AI Content Safety: text:analyze and text:shieldPrompt. */
export function azureService(): Promise<ScriptedUpstream> {
  const analyze = z.strictObject({
    text: z.string().min(1).max(10_000),
    categories: z.array(z.enum(['Hate', 'SelfHarm', 'Sexual', 'Violence'])).optional(),
    blocklistNames: z.array(z.string()).optional(),
    haltOnBlocklistHit: z.boolean().optional(),
    outputType: z.enum(['FourSeverityLevels', 'EightSeverityLevels']).optional(),
  });
  const shield = z.strictObject({
    userPrompt: z.string().max(10_000).optional(),
    documents: z.array(z.string().max(10_000)).max(5).optional(),
  });
  return serve(({ path, headers, json }) => {
    if (headers['ocp-apim-subscription-key'] !== 'azure-key')
      return { status: 401, body: { error: { code: '401' } } };
    if (path === '/contentsafety/text:analyze?api-version=2024-09-01') {
      const { text } = analyze.parse(json);
      return ok({
        blocklistsMatch: [],
        categoriesAnalysis: [
          { category: 'Hate', severity: 0 },
          { category: 'Violence', severity: bad(text) ? 4 : 2 },
        ],
      });
    }
    if (path === '/contentsafety/text:shieldPrompt?api-version=2024-09-01') {
      const { userPrompt = '', documents = [] } = shield.parse(json);
      return ok({
        userPromptAnalysis: { attackDetected: userPrompt.includes('ignore all') },
        documentsAnalysis: documents.map((text) => ({ attackDetected: text.includes('ignore all') })),
      });
    }
    return { status: 404, body: {} };
  });
}

/** Google Model Armor. */
export function modelArmorService(): Promise<ScriptedUpstream> {
  const prompt = z.strictObject({ userPromptData: z.strictObject({ text: z.string().min(1) }) });
  const response = z.strictObject({
    modelResponseData: z.strictObject({ text: z.string().min(1) }),
    userPrompt: z.string().optional(),
  });
  const name = '/v1/projects/p/locations/europe-west4/templates/t:';
  return serve(({ path, headers, json }) => {
    if (!bearer(headers, 'google-token'))
      return { status: 401, body: { error: { status: 'UNAUTHENTICATED' } } };
    let text: string;
    if (path === `${name}sanitizeUserPrompt`) text = prompt.parse(json).userPromptData.text;
    else if (path === `${name}sanitizeModelResponse`) text = response.parse(json).modelResponseData.text;
    else return { status: 404, body: {} };
    const state = bad(text) ? 'MATCH_FOUND' : 'NO_MATCH_FOUND';
    return ok({
      sanitizationResult: {
        filterMatchState: state,
        invocationResult: text.includes('partial') ? 'PARTIAL' : 'SUCCESS',
        filterResults: {
          csam: {
            csamFilterFilterResult: { executionState: 'EXECUTION_SUCCESS', matchState: 'NO_MATCH_FOUND' },
          },
          rai: { raiFilterResult: { executionState: 'EXECUTION_SUCCESS', matchState: state } },
        },
      },
    });
  });
}

/** Possible units of the positions that Lakera reports, because its unit is not published. */
export const lakeraOffsets = {
  'code points': (before: string, found: string) => {
    const start = Array.from(before).length;
    return { start, end: start + Array.from(found).length };
  },
  'code units': (before: string, found: string) => ({
    start: before.length,
    end: before.length + found.length,
  }),
  'code units, with the last one': (before: string, found: string) => ({
    start: before.length,
    end: before.length + found.length - 1,
  }),
} as const;

/**
 * Lakera Guard v2: https://docs.lakera.ai/api-reference/api/endpoints/guard/screen-content (members of the request, roles), LiteLLM's
 * `lakera_ai_v2.py` and its tests (members of the answer; `message_id` is null where a detector found nothing).
 */
export function lakeraService(
  offsets: (typeof lakeraOffsets)[keyof typeof lakeraOffsets] = lakeraOffsets['code points'],
): Promise<ScriptedUpstream> {
  const shape = z.strictObject({
    messages: z
      .array(
        z.strictObject({
          role: z.enum(['system', 'user', 'assistant']),
          content: z.string(),
        }),
      )
      .min(1),
    project_id: z.string().optional(),
    payload: z.boolean().optional(),
    breakdown: z.boolean().optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
    dev_info: z.boolean().optional(),
  });
  return serve(({ path, headers, json }) => {
    if (path !== '/v2/guard') return { status: 404, body: {} };
    if (!bearer(headers, 'lakera-key')) return { status: 401, body: { error: 'Invalid API key' } };
    const { messages, breakdown, payload: wantsPayload } = shape.parse(json);
    const payload = messages.flatMap(({ content }, index) => {
      const at = content.indexOf('Ada');
      const found = { text: 'Ada', detector_type: 'pii/name', labels: [], message_id: index };
      return at < 0 ? [] : [{ ...offsets(content.slice(0, at), 'Ada'), ...found }];
    });
    const attack = messages.findIndex(({ content }) => bad(content));
    return ok({
      flagged: attack >= 0 || payload.length > 0,
      ...(wantsPayload === true ? { payload } : {}),
      ...(breakdown === true ? { breakdown: detectors(attack, payload[0]?.message_id ?? -1) } : {}),
      metadata: { request_uuid: 'u' },
    });
  });
}

function detectors(attack: number, name: number): readonly object[] {
  const one = { project_id: 'p', policy_id: 'x' };
  const found = (index: number) => ({ detected: index >= 0, message_id: index < 0 ? null : index });
  return [
    { ...one, detector_id: 'a', detector_type: 'prompt_attack', ...found(attack) },
    { ...one, detector_id: 'b', detector_type: 'pii/name', ...found(name) },
  ];
}

/**
 * Presidio's analyzer, by its OpenAPI document (microsoft/presidio, docs/api-docs/api-docs.yml, `AnalyzeRequest` and `RecognizerResult`) and its
 * server (presidio-analyzer/app.py), which answers 500 where there is no text or it does not know the language. Offsets count code points, as
 * Python's do.
 */
export function presidioService(): Promise<ScriptedUpstream> {
  const shape = z.strictObject({
    text: z.string(),
    language: z.string(),
    correlation_id: z.string().optional(),
    score_threshold: z.number().optional(),
    entities: z.array(z.string()).optional(),
    return_decision_process: z.boolean().optional(),
    ad_hoc_recognizers: z.array(z.record(z.string(), z.unknown())).optional(),
  });
  return serve(({ path, json }) => {
    if (path !== '/analyze') return { status: 404, body: {} };
    const { text, language } = shape.parse(json);
    if (text === '') return { status: 500, body: { error: 'No text provided' } };
    if (language !== 'en') return { status: 500, body: { error: 'No matching recognizers were found' } };
    const findings = [...text.matchAll(/Ada(?: Lovelace)?/g)].map(({ 0: name, index }) => {
      const start = Array.from(text.slice(0, index)).length;
      return {
        analysis_explanation: null,
        start,
        end: start + name.length,
        score: 0.85,
        entity_type: 'PERSON',
      };
    });
    return ok([...findings, { start: 0, end: 1, score: 0.01, entity_type: 'DATE_TIME' }]);
  });
}

/** A webhook by the contract of the guide, which verifies its signature. */
export function webhookService(secret: string): Promise<ScriptedUpstream> {
  const shape = z.strictObject({
    version: z.literal(1),
    side: z.enum(['request', 'response']),
    call: z.string(),
    operation: z.string(),
    format: z.string(),
    model: z.string(),
    key: z.strictObject({ id: z.string(), name: z.string() }).nullable(),
    texts: z.array(z.strictObject({ role: z.string(), text: z.string() })),
  });
  return serve(({ headers, json, raw }) => {
    const [, at = '', sent = ''] =
      /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-sluice-signature'])) ?? [];
    const right = createHmac('sha256', secret).update(`${at}.${raw}`).digest('hex');
    if (sent !== right) return { status: 401, body: {} };
    const { texts } = shape.parse(json);
    const masks = texts.flatMap(({ text }, index) => {
      const start = text.indexOf('Ada');
      return start < 0 ? [] : [{ text: index, start, end: start + 3, label: 'first name' }];
    });
    const flagged = texts.some(({ text }) => bad(text));
    return ok({
      flagged: flagged || masks.length > 0,
      reasons: flagged ? ['weapons'] : [],
      ...(masks.length > 0 ? { masks } : {}),
    });
  });
}
