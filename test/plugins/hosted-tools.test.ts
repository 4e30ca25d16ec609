import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { memberRowOf, toolRowOf, toolRows } from '../../plugins/_hosted-tools.ts';
import { paidMembers } from '../../plugins/_find-paid-members.ts';
import { foldName } from '../../core/sdk/member-names.ts';
import { sdkMembers } from '../support/sdk-members.ts';
import { literalTypes } from '../support/sdk-tools.ts';

/** Members called `model`, or something like it, that no row of the table reads. */
interface Exception {
  readonly owners: RegExp;
  readonly why: string;
}

interface Sdk {
  readonly files: readonly string[];
  readonly roots: RegExp;
  /** Types whose literals of `type` (or whose members, where tools have no type) are hosted tools. */
  readonly tools?: RegExp;
  readonly exceptions: readonly Exception[];
}

const packages = join(import.meta.dirname, '../../node_modules');

function declarations(folder: string, keep: RegExp): readonly string[] {
  return readdirSync(join(packages, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.d.ts') && keep.test(file))
    .map((file) => join(packages, folder, file));
}

const params = /Params(?:Base|NonStreaming|Streaming)?$/;
const ofCall = 'the model of the call itself, which is checked';
const ofReply = 'a part of a reply';

const sdks: Readonly<Record<string, Sdk>> = {
  openai: {
    files: declarations(
      'openai/resources',
      /^(?:responses|chat|realtime|completions|embeddings|images|audio|moderations|shared)\b/,
    ),
    roots: /Params(?:Base|NonStreaming|Streaming)?$|^ResponsesClientEvent$|^RealtimeClientEvent$/,
    tools:
      /^(?:Tool|RealtimeToolsConfigUnion)\.\w+$|^(?:FunctionTool|FileSearchTool|ComputerTool|ComputerUsePreviewTool|WebSearchTool|WebSearchPreviewTool|FunctionShellTool|CustomTool|NamespaceTool|ToolSearchTool|ApplyPatchTool|ChatCompletionFunctionTool|ChatCompletionCustomTool|RealtimeFunctionTool)$/,
    exceptions: [
      { owners: params, why: ofCall },
      { owners: /^ResponsesClientEvent\.ResponseCreate$/, why: ofCall },
      { owners: /^Realtime\w*Session\w*Request$/, why: 'the model of the session, which cannot be changed' },
      { owners: /^(?:Response|ChatCompletion|ChatCompletionChunk)\.Moderation/, why: ofReply },
      { owners: /SvgUsage$/, why: ofReply },
      { owners: /^VoiceCreateParams\.Prompt$/, why: 'the endpoint that takes it is not served' },
    ],
  },
  anthropic: {
    files: declarations('@anthropic-ai/sdk/resources', /^(?:beta\/)?messages[./]/),
    roots: params,
    tools:
      /^(?:Beta)?(?:Tool(?!Choice|Use|Result|Reference|Change|Search.*(?:Result|Error))|CodeExecutionTool\d|BrowserToolset\d|ComputerToolset\d|MemoryTool\d|WebSearchTool\d|WebFetchTool\d|AdvisorTool\d|MCPToolset)\w*(?<=\d{8}|Toolset|Tool)$/,
    exceptions: [
      { owners: params, why: ofCall },
      { owners: /^BatchCreateParams\.Request\.Params$/, why: ofCall },
      { owners: /^BetaFallbackInfoParam$/, why: 'a block of the history, which tells what has happened' },
    ],
  },
  google: {
    files: declarations('@google/genai/dist', /^genai\.d\.ts$/),
    roots: /^(?:GenerateContent|CountTokens|EmbedContent|CreateCachedContent|CreateBatchJob)Parameters$/,
    tools: /^Tool$/,
    exceptions: [
      { owners: /Parameters$|^InlinedRequest$/, why: ofCall },
      {
        owners: /^GenerateContentConfig$|^GenerationConfig$/,
        why: 'the member itself is in the table, or is a filter without a model',
      },
      { owners: /^ModelStatus$/, why: ofReply },
      {
        owners: /^RagRetrievalConfigRanking|^Ranking$|^RankService$/,
        why: 'inside of the tool `retrieval`, which is unbounded',
      },
    ],
  },
  cohere: {
    files: declarations('cohere-ai/api', /^(?:resources\/v2\/|types\/)/),
    roots: /^V2(?:Chat|ChatStream|Embed|Rerank)Request$/,
    exceptions: [{ owners: /Request$/, why: ofCall }],
  },
  bedrock: {
    files: declarations('@aws-sdk/client-bedrock-runtime/dist-types/models', /^models_0\.d\.ts$/),
    roots: /^Converse(?:Stream)?Request$/,
    exceptions: [],
  },
};

const like = /^(?:model|models|modelName|model_name|\w*model\w*Config|modelRoutingPreference)$/;

/** Types whose `model` is read by a row: by the tool that has it, or by the member of the body. */
const covered: Readonly<Record<string, Json>> = {
  'Tool.ImageGeneration': { tools: [{ type: 'image_generation', model: 'm' }] },
  'ResponseToolSearchOutputItemParam.ImageGeneration': {
    input: [{ type: 'tool_search_output', tools: [{ type: 'image_generation', model: 'm' }] }],
  },
  'Tool.ImageGeneration.Svg': { tools: [{ type: 'image_generation', svg: { model: 'm' } }] },
  'ResponseToolSearchOutputItemParam.ImageGeneration.Svg': {
    input: [{ type: 'tool_search_output', tools: [{ type: 'image_generation', svg: { model: 'm' } }] }],
  },
  'ResponseCreateParams.Moderation': { moderation: { model: 'm' } },
  'ResponsesClientEvent.ResponseCreate.Moderation': { moderation: { model: 'm' } },
  'ChatCompletionCreateParams.Moderation': { moderation: { model: 'm' } },
  AudioTranscription: { session: { audio: { input: { transcription: { model: 'm' } } } } },
  'RealtimeTranslationSessionCreateRequest.Audio.Input.Transcription': {
    session: { audio: { input: { transcription: { model: 'm' } } } },
  },
  'RealtimeTranslationSessionUpdateRequest.Audio.Input.Transcription': {
    session: { audio: { input: { transcription: { model: 'm' } } } },
  },
  'RealtimeTranslationSession.Audio.Input.Transcription': {
    session: { audio: { input: { transcription: { model: 'm' } } } },
  },
  'ImageGenerateParams.Svg': { svg: { model: 'm' } },
  // As a form names it.
  'ImageEditParams.Svg': { 'svg[model]': 'm' },
  BetaAdvisorTool20260301: { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'm' }] },
  BetaFallbackParam: { fallbacks: [{ model: 'm' }] },
  GenerationConfigRoutingConfigManualRoutingMode: { routingConfig: { manualMode: { modelName: 'm' } } },
};

type Json = { readonly [name: string]: unknown };

describe.each(Object.entries(sdks))(
  'requests of the SDK %s',
  (_name, { files, roots, tools, exceptions }) => {
    const members = sdkMembers(files, roots);

    test('name no model that the table does not read', () => {
      const unknown = members
        .filter(({ name }) => like.test(name))
        .filter(({ name }) => memberRowOf(foldName(name)) === undefined)
        .filter(
          ({ owner }) =>
            !Object.hasOwn(covered, owner) && !exceptions.some(({ owners }) => owners.test(owner)),
        )
        .filter(({ name }) => name !== 'modelRoutingPreference' && name !== 'modelArmorConfig')
        .map(({ owner, name }) => `${owner}.${name}`);
      expect([...new Set(unknown)]).toEqual([]);
    });

    test.skipIf(tools === undefined)('have no tool that the table does not know', () => {
      const types = literalTypes(files, tools ?? /^/);
      expect(types.length).toBeGreaterThan(3);
      expect(types.filter((type) => toolRowOf(type) === undefined)).toEqual([]);
    });
  },
);

test.each(Object.entries(covered))('the model that %s names is read', (_owner, body) => {
  expect(paidMembers(body as never).map(({ models }) => models)).toEqual([['m']]);
});

test('every row of the table is reached by a tool', () => {
  const known = Object.values(sdks).flatMap(({ files, tools }) =>
    tools === undefined ? [] : literalTypes(files, tools),
  );
  // Tools of gateways and of other providers, and of wires that these SDKs do not speak.
  const others = ['vendor:datetime', 'vendor:advisor', 'x_search'];
  const reached = new Set([...known, ...others].map(toolRowOf));
  expect(toolRows.filter((row) => !reached.has(row)).map(({ type }) => type.source)).toEqual([]);
});

test.each<[string, Json, readonly (readonly [kind: string, models: readonly string[]])[]]>([
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_GuardrailConfiguration.html
  [
    'a guardrail',
    { guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: '1' } },
    [['unbounded', []]],
  ],
  // @google/genai, ModelArmorConfig
  ['a filter of prompts', { modelArmorConfig: { promptTemplateName: 'p' } }, [['unbounded', []]]],
  [
    'a plugin that excludes models',
    { plugins: [{ id: 'auto-router', allowed_models: ['a'], excluded_models: ['b'] }] },
    [['unbounded', ['a']]],
  ],
  ['models that may not answer', { ignored_models: ['b'] }, []],
  ['a member of that name with something else in it', { own_model: { of: 'mine' } }, []],
  ['a schema with such a property', { format: { properties: { car_model: { type: 'string' } } } }, []],
])('%s is found with the models that it names', (_name, body, found) => {
  expect(paidMembers(body as never).map(({ kind, models }) => [kind, models])).toEqual(found);
});
