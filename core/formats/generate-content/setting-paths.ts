import type { ChatSettings } from '../../model/chat.ts';
import { respelled, rows } from './settings.ts';

const paths = new Map<string, string>([
  ...rows.map((row) => [row.name, row.path] as const),
  ['reasoning', 'generationConfig.thinkingConfig'],
  ['responseFormat', 'generationConfig.responseSchema'],
  ...respelled.flatMap(({ name, write, paths: [path = name] }) =>
    write === undefined ? [] : [[name, path] as const],
  ),
]);

/** Where a client of this format writes a setting; the setting's own name when it has no place here. */
export function settingPath(name: keyof ChatSettings): string {
  return paths.get(name) ?? name;
}
