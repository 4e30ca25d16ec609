import type { ChatSettings } from '../../model/chat.ts';
import type { Codec } from '../../sdk/format.ts';

/**
 * A loss's path as the client would write it: `settings.topP` → `generationConfig.topP`, `messages[0].content[1].cache` →
 * `messages[0].content[1].cache_control`. Paths that are already the client's stay.
 */
export function inClientWords(codec: Pick<Codec, 'settingPath' | 'words'>, path: string): string {
  const words = codec.words ?? {};
  if (path.startsWith('settings.')) {
    const known = words[path];
    if (known !== undefined) return known;
    const [name = '', ...members] = path.slice('settings.'.length).split('.');
    return [codec.settingPath(name as keyof ChatSettings), ...members].join('.');
  }
  for (const [neutral, word] of Object.entries(words)) {
    if (path.endsWith(`].${neutral}`)) return path.slice(0, path.length - neutral.length) + word;
  }
  return path;
}
