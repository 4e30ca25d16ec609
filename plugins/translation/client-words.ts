/** Converts neutral paths of parameters into those of the client's format, and finds the parameter that a path of a format means. */
import { plainMember, type ChatSettings } from 'sluice';
import type { Codec } from 'sluice/channel-kit';

/**
 * Converts the path of a dropped field into the client's format: `settings.topP` → `generationConfig.topP`, `messages[0].content[1].cache` →
 * `messages[0].content[1].cache_control`. Other paths stay as they are.
 */
export function inClientWords(codec: Pick<Codec, 'settingPath' | 'words'>, path: string): string {
  const words = codec.words ?? {};
  const known = Object.hasOwn(words, path) ? words[path] : undefined;
  if (known !== undefined) return known;
  if (path.startsWith('settings.')) {
    const [name = '', ...members] = path.slice('settings.'.length).split('.');
    return [codec.settingPath(name as keyof ChatSettings), ...members].join('.');
  }
  for (const [neutral, word] of Object.entries(words)) {
    if (path.endsWith(`].${neutral}`)) return path.slice(0, path.length - neutral.length) + word;
  }
  return path;
}

/** Every setting that a request can have. */
const settingNames = Object.keys({
  maxOutput: true,
  temperature: true,
  topP: true,
  topK: true,
  stop: true,
  choices: true,
  seed: true,
  frequencyPenalty: true,
  presencePenalty: true,
  logprobs: true,
  topLogprobs: true,
  responseFormat: true,
  verbosity: true,
  reasoning: true,
  parallelTools: true,
  user: true,
  metadata: true,
  serviceTier: true,
  modalities: true,
  promptCacheKey: true,
} satisfies Record<keyof ChatSettings, true>) as readonly (keyof ChatSettings)[];

/** Returns the setting that a format writes at this path, or in an object there; undefined for none. */
export function settingAt(codec: Pick<Codec, 'settingPath'>, path: string): keyof ChatSettings | undefined {
  const plain = plainMember(path);
  return settingNames.find((name) => {
    const own = plainMember(codec.settingPath(name));
    return own === plain || own.startsWith(`${plain}.`) || plain.startsWith(`${own}.`);
  });
}
