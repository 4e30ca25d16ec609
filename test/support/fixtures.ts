import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discover } from '../../core/config/discover.ts';
import type { Format, RouteParams } from '../../core/sdk/format.ts';
import type { JsonObject } from '../../core/model/json.ts';

const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url));
const formatsFolder = fileURLToPath(new URL('../../core/formats/', import.meta.url));

/** A file under `test/fixtures/FORMAT/KIND/`. */
export interface Fixture {
  readonly name: string;
  readonly text: string;
}

/** Every chat-like format, as the gateway finds them, but for `invoke`: that is messages in another envelope, tried in test/channels/bedrock-invoke. */
export async function allFormats(): Promise<readonly Format[]> {
  const { found } = await discover(formatsFolder, 'folders');
  return found
    .map(({ value }) => value as Format)
    .filter(({ name, codecs }) => codecs.chat !== undefined && name !== 'invoke');
}

/** The fixture files of a format with an ending, sorted by name. What is `tolerated` is read, and written again in the official way. */
export function fixturesOf(
  format: string,
  kind: 'requests' | 'replies' | 'streams' | 'tolerated',
  ending: string,
): readonly Fixture[] {
  const folder = join(fixtures, format, kind);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(ending) && !file.endsWith('.events.json'))
    .toSorted()
    .map((file) => ({ name: file.slice(0, -ending.length), text: readFileSync(join(folder, file), 'utf8') }));
}

/** A client's request: the body, and what the route says besides. */
export function requestOf(fixture: Fixture): { readonly params: RouteParams; readonly body: JsonObject } {
  const { params = {}, body } = JSON.parse(fixture.text) as { params?: RouteParams; body: JsonObject };
  return { params, body };
}
