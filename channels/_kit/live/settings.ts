/**
 * Session settings of OpenAI's Realtime API: defaults, validation, dropped fields, and translation into the setup message of Gemini's Live
 * API.
 */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { toSchemaSubset } from 'sluice/internal';

/** Model of a session. */
export interface LiveModel {
  /** The provider's name of the model. */
  readonly model: string;
  /** The full name of its resource: `models/NAME`, or the longer one of Vertex AI. */
  readonly resource: string;
  /** True where ids of calls are refused in their results. LiteLLM 1.110.2, llms/vertex_ai/realtime/transformation.py */
  readonly refusesCallIds?: boolean;
}

/** Returns a session as OpenAI shows a new one. */
export function newSession(id: string, model: string): JsonObject {
  return {
    type: 'realtime',
    object: 'realtime.session',
    id,
    model,
    output_modalities: ['audio'],
    instructions: '',
    tools: [],
    tool_choice: 'auto',
    max_output_tokens: 'inf',
    audio: {
      input: {
        format: pcm,
        transcription: null,
        noise_reduction: null,
        turn_detection: { type: 'server_vad' },
      },
      output: { format: pcm, voice: 'default', speed: 1 },
    },
  };
}

const pcm = { type: 'audio/pcm', rate: 24_000 } as const;

/** Members of a session that Gemini has, or that need nothing of it. */
const known = new Set(
  'type object id model output_modalities instructions tools tool_choice max_output_tokens audio reasoning'.split(
    ' ',
  ),
);

/** Settings without a counterpart, with the values that mean what Gemini does anyway. */
const harmless: Readonly<Record<string, readonly JsonValue[]>> = {
  truncation: ['auto'],
  tracing: ['auto'],
  parallel_tool_calls: [true],
};

/** Voices of OpenAI alone: `node_modules/openai/resources/realtime/realtime.d.ts`, `RealtimeAudioConfigOutput`. */
const otherVoices = new Set('alloy ash ballad coral echo sage shimmer verse marin cedar'.split(' '));

/** Returns the session with what a client changes in it. Other members of it and of its audio stay. */
export function changedSession(session: JsonObject, change: JsonObject): JsonObject {
  const { audio, ...rest } = change;
  const { type: _type, object: _object, id: _id, model: _model, ...settings } = rest;
  return { ...session, ...settings, audio: merged(session['audio'], audio, 2) };
}

function merged(old: JsonValue | undefined, change: JsonValue | undefined, depth: number): JsonValue {
  if (!isObject(change)) return old ?? null;
  if (!isObject(old) || depth === 0) return change;
  const names = Object.keys(change);
  return {
    ...old,
    ...Object.fromEntries(
      names.map((name) => [
        name,
        depth > 1 ? merged(old[name], change[name], depth - 1) : (change[name] ?? null),
      ]),
    ),
  };
}

/** Returns the first member of a change whose value makes no sense, or undefined. */
export function wrongMember({
  instructions,
  tools,
  output_modalities: modalities,
  audio,
}: JsonObject): string | undefined {
  if (instructions !== undefined && typeof instructions !== 'string') return 'session.instructions';
  if (tools !== undefined && !(Array.isArray(tools) && tools.every(isObject))) return 'session.tools';
  const isModality =
    Array.isArray(modalities) && modalities.length === 1 && /^(text|audio)$/.test(String(modalities[0]));
  if (modalities !== undefined && !isModality) return 'session.output_modalities';
  const { input, output } = isObject(audio) ? audio : {};
  for (const [name, side] of [
    ['input', input],
    ['output', output],
  ] as const)
    if (isObject(side) && side['format'] !== undefined && soundFormat(side['format']) === undefined)
      return `session.audio.${name}.format`;
  return undefined;
}

/** A format of sound: samples a second, and the law of G.711 where it is one. */
export interface SoundFormat {
  readonly rate: number;
  readonly law?: 'mu' | 'alpha';
}

/** Returns the format that a session names, or undefined for one that there is not. */
export function soundFormat(format: JsonValue | undefined): SoundFormat | undefined {
  const { type, rate = 24_000 } = isObject(format) ? format : {};
  if (type === 'audio/pcmu') return { rate: 8000, law: 'mu' };
  if (type === 'audio/pcma') return { rate: 8000, law: 'alpha' };
  const isRate = typeof rate === 'number' && Number.isInteger(rate) && rate >= 8000 && rate <= 96_000;
  return type === 'audio/pcm' && isRate ? { rate } : undefined;
}

/** Returns the members of a change that Gemini has no counterpart for. */
export function lostSettings(change: JsonObject, model: string): readonly string[] {
  const lost = Object.keys(change).filter((name) => {
    const value = change[name] ?? null;
    return (
      !known.has(name) && value !== null && harmless[name]?.includes(value) !== true && !isEmptyList(value)
    );
  });
  const { tools, tool_choice: choice, audio, reasoning } = change;
  if (choice !== undefined && choice !== 'auto' && choice !== 'none') lost.push('tool_choice');
  if (Array.isArray(tools) && tools.some((tool) => !isObject(tool) || tool['type'] !== 'function'))
    lost.push('tools');
  if (isObject(reasoning) && thinking(reasoning, model) === undefined) lost.push('reasoning');
  const { input = null, output = null } = isObject(audio) ? audio : {};
  if (isObject(output)) {
    const { voice, speed = 1 } = output;
    if (typeof voice === 'string' ? otherVoices.has(voice) : isObject(voice)) lost.push('audio.output.voice');
    if (speed !== 1) lost.push('audio.output.speed');
  }
  const inside = isObject(input) ? lostInput(input).map((name) => `audio.input.${name}`) : [];
  return [...lost, ...inside, ...lostSchemas(tools)].map((name) => `session.${name}`);
}

function lostInput({
  noise_reduction: noise,
  transcription,
  turn_detection: turns,
}: JsonObject): readonly string[] {
  const lost: string[] = [];
  if (isObject(noise)) lost.push('noise_reduction');
  if (
    isObject(transcription) &&
    typeof transcription['prompt'] === 'string' &&
    transcription['prompt'] !== ''
  )
    lost.push('transcription.prompt');
  if (isObject(turns)) {
    const { threshold = 0.5, create_response: answers = true, idle_timeout_ms: idle = null } = turns;
    if (threshold !== 0.5) lost.push('turn_detection.threshold');
    if (answers === false) lost.push('turn_detection.create_response');
    if (idle !== null) lost.push('turn_detection.idle_timeout_ms');
  }
  return lost;
}

function isEmptyList(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Returns true when the client itself marks the end of a turn. */
export function isManual(session: JsonObject): boolean {
  const turns = inputOf(session)['turn_detection'];
  return !isObject(turns) || turns['create_response'] === false;
}

/** Returns the settings of the client's audio. */
export function inputOf({ audio }: JsonObject): JsonObject {
  return isObject(audio) && isObject(audio['input']) ? audio['input'] : {};
}

/** Returns the settings of the model's audio. */
export function outputOf({ audio }: JsonObject): JsonObject {
  return isObject(audio) && isObject(audio['output']) ? audio['output'] : {};
}

/** Returns true when the model speaks, false where it writes. */
export function speaks({ output_modalities: modalities }: JsonObject): boolean {
  return !Array.isArray(modalities) || modalities[0] === 'audio';
}

/** Returns the message that sets a session up. `handle`: of an earlier connection that it goes on from. */
export function setupMessage(
  session: JsonObject,
  liveModel: LiveModel,
  handle: string | undefined,
): JsonObject {
  const { instructions, max_output_tokens: limit, truncation } = session;
  const isAudio = speaks(session);
  const { transcription } = inputOf(session);
  const level = thinking(isObject(session['reasoning']) ? session['reasoning'] : {}, liveModel.model);
  const { voice } = outputOf(session);
  const isVoice = typeof voice === 'string' && voice !== 'default' && !otherVoices.has(voice);
  const declarations = functionsOf(session, liveModel.model);
  return {
    setup: {
      model: liveModel.resource,
      generationConfig: {
        responseModalities: [isAudio ? 'AUDIO' : 'TEXT'],
        ...(typeof limit === 'number' ? { maxOutputTokens: limit } : {}),
        ...(isAudio && isVoice
          ? { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } } }
          : {}),
        ...(level === undefined ? {} : { thinkingConfig: { thinkingLevel: level } }),
      },
      ...(instructions === '' ? {} : { systemInstruction: { parts: [{ text: instructions ?? '' }] } }),
      ...(declarations.length === 0 ? {} : { tools: [{ functionDeclarations: declarations }] }),
      realtimeInputConfig: realtimeInput(session),
      ...(isObject(transcription) ? { inputAudioTranscription: languagesOf(transcription) } : {}),
      ...(isAudio ? { outputAudioTranscription: {} } : {}),
      // Without it sessions with sound end after 15 minutes: https://ai.google.dev/gemini-api/docs/live-session
      ...(truncation === 'disabled' ? {} : { contextWindowCompression: { slidingWindow: {} } }),
      sessionResumption: handle === undefined ? {} : { handle },
    },
  };
}

/** Returns `languageCodes`: @google/genai 2.32.0, `AudioTranscriptionConfig`. */
function languagesOf({ language }: JsonObject): JsonObject {
  return typeof language === 'string' && language !== '' ? { languageCodes: [language] } : {};
}

function realtimeInput(session: JsonObject): JsonObject {
  // Other settings beside `disabled` are refused. LiteLLM 1.110.2, llms/gemini/realtime/transformation.py
  if (isManual(session)) return { automaticActivityDetection: { disabled: true } };
  const turns = inputOf(session)['turn_detection'];
  const {
    prefix_padding_ms: before,
    silence_duration_ms: silence,
    eagerness,
    interrupt_response: interrupts,
  } = isObject(turns) ? turns : {};
  const end =
    eagerness === 'low' ? 'END_SENSITIVITY_LOW' : eagerness === 'high' ? 'END_SENSITIVITY_HIGH' : undefined;
  return {
    automaticActivityDetection: {
      ...(typeof before === 'number' ? { prefixPaddingMs: before } : {}),
      ...(typeof silence === 'number' ? { silenceDurationMs: silence } : {}),
      ...(end === undefined ? {} : { endOfSpeechSensitivity: end }),
    },
    ...(interrupts === false ? { activityHandling: 'NO_INTERRUPTION' } : {}),
  };
}

/** Functions of 3.8 run beside the response unless they say otherwise. livekit-plugins-google 1.8.9, `MODELS_DEFAULT_NON_BLOCKING` */
function functionsOf({ tools, tool_choice: choice }: JsonObject, model: string): readonly JsonObject[] {
  if (choice === 'none' || !Array.isArray(tools)) return [];
  const waits = model.includes('3.8') && !model.includes('extended-thinking');
  return tools.filter(isObject).flatMap(({ type, name, description, parameters }) =>
    type !== 'function' || typeof name !== 'string'
      ? []
      : [
          {
            name,
            ...(typeof description === 'string' ? { description } : {}),
            ...schemaOf(parameters, () => {}),
            ...(waits ? { behavior: 'BLOCKING' } : {}),
          },
        ],
  );
}

/** Parameters in the part of JSON Schema that a session takes. `drop` gets the path of what it has not. */
function schemaOf(parameters: JsonValue | undefined, drop: (path: string) => void): JsonObject {
  const schema = isObject(parameters) ? toSchemaSubset(parameters, { drop }) : undefined;
  return schema === undefined ? {} : { parameters: schema };
}

/** Keywords of schemas that change nothing for a model. */
const annotations = /(?:^|\.)(?:additionalProperties|\$schema|\$id|strict)$/;

function lostSchemas(tools: JsonValue | undefined): readonly string[] {
  const lost: string[] = [];
  for (const [at, tool] of (Array.isArray(tools) ? tools : []).entries())
    schemaOf(isObject(tool) ? tool['parameters'] : undefined, (path) => {
      if (!annotations.test(path) && lost.length < mostLost) lost.push(`tools[${at}].parameters.${path}`);
    });
  return lost;
}

/** Maximum number of parts of schemas that an error names. */
const mostLost = 20;

const levels: Readonly<Record<string, string>> = {
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
};

/** Returns the level of thinking. Extended thinking insists on one. pydantic-ai-slim 2.68.0, realtime/google.py, `google_thinking_always_enabled` */
function thinking({ effort }: JsonObject, model: string): string | undefined {
  const level = /^gemini-[3-9]/.test(model) ? levels[String(effort)] : undefined;
  return level ?? (model.includes('extended-thinking') && effort === undefined ? 'MINIMAL' : undefined);
}
