import { describe, expect, test } from 'vitest';
import { blank, imports, read, scripts } from './source.ts';

/*
 * `sluice/internal` has what plugins and channels of this repository use beyond the public API. Authors outside of this repository cannot use
 * it. Write new plugins and channels with the public API alone: the lists only shrink.
 */

/** Files of channels that import `sluice/internal`. */
const channelFiles = [
  'channels/_kit/dialect/chat-dialect.ts',
  'channels/_kit/dialect/messages-side.ts',
  'channels/_kit/jobs/jobs.ts',
  'channels/_kit/live/settings.ts',
  'channels/demo/answers.ts',
  'channels/demo/index.ts',
  'channels/demo/operations.ts',
  'channels/demo/video.ts',
  'channels/vertex/identity.ts',
  'channels/vertex/videos.ts',
];

/** Plugins that import `sluice/internal`: the names of their files or folders. */
const plugins = [
  'admin',
  'provider-objects',
  'quota',
  'realtime-sessions',
  'stored-responses',
  'translation',
  'usage-log',
  'video-tasks',
];

/** Maximum number of names that `sluice/internal` exports. */
const mostNames = 113;

/** Which of the files import `sluice/internal`, by the name that `nameOf` gives them. */
function using(folder: string, nameOf: (path: string) => string): readonly string[] {
  const files = scripts(folder).filter((path) =>
    imports(path).some(({ specifier }) => specifier === 'sluice/internal'),
  );
  return [...new Set(files.map(nameOf))].toSorted();
}

/** Returns the difference of two lists, with what to do about it; empty where there is none. */
function difference(found: readonly string[], listed: readonly string[]): readonly string[] {
  const more = found.filter((name) => !listed.includes(name));
  const less = listed.filter((name) => !found.includes(name));
  return [
    ...more.map(
      (name) => `${name}: import 'sluice' or 'sluice/channel-kit', or publish what is missing there`,
    ),
    ...less.map((name) => `${name}: no longer imports 'sluice/internal': take it out of the list`),
  ];
}

describe('sluice/internal', () => {
  test('is imported by listed files of channels alone', () => {
    expect(
      difference(
        using('channels', (path) => path),
        channelFiles,
      ),
    ).toEqual([]);
  });

  test('is imported by listed plugins alone', () => {
    const nameOf = (path: string): string => path.split('/')[1]?.replace(/\.ts$/, '') ?? '';
    expect(difference(using('plugins', nameOf), plugins)).toEqual([]);
  });

  test('exports no more names than before', () => {
    const code = blank(read('core/sdk/internal.ts'), { strings: false });
    const names = [...code.matchAll(/export(?: type)? \{([^}]*)\}/g)].flatMap(([, list = '']) =>
      list.split(',').filter((name) => name.trim() !== ''),
    );
    expect(names.length, 'Lower mostNames when names go, and publish what authors need too.').toBe(mostNames);
  });
});
