/** JSON Schemas of channel kinds and of plugin options, from which forms are made. Secrets have `"secret": "text"` or `"url"`. */
import { z } from 'zod';
import type { JsonObject } from '../../model/json.ts';
import { rowSchema } from '../../settings/prices.ts';
import { optionsSchema } from '../channel-options.ts';
import { shapeOf, type RuntimeDefinitions } from './definitions.ts';

/** An option of a plugin that may be set at run time. */
export interface PluginForm {
  /** Name of its entry: `guard.checks`. */
  readonly name: string;
  readonly schema: JsonObject;
}

/** The options of a channel kind. */
export interface ChannelForm {
  readonly schema: JsonObject;
  /** Names of the options that this kind has beside those of all channels. */
  readonly own: readonly string[];
}

/** Returns the options of a channel kind; undefined where there is none of the name. */
export async function channelForm(
  definitions: RuntimeDefinitions,
  type: string,
): Promise<ChannelForm | undefined> {
  const kind = await definitions.kind(type);
  if (kind === undefined) return undefined;
  const entry = kind();
  const { id: _, ...shape } = optionsSchema(entry).shape;
  return { schema: formOf(z.strictObject(shape)), own: Object.keys(entry.spec.options?.shape ?? {}) };
}

/** Returns the schema of a price. */
export function priceForm(): JsonObject {
  return formOf(rowSchema);
}

/** Returns the editable options of the plugins that run. */
export async function pluginForms(definitions: RuntimeDefinitions): Promise<readonly PluginForm[]> {
  const plugins = await definitions.plugins();
  return [...plugins].flatMap(([plugin, { spec }]) =>
    (spec.editable ?? []).flatMap((option: string) => {
      const schema = shapeOf(spec.options)?.[option];
      return schema === undefined ? [] : [{ name: `${plugin}.${option}`, schema: formOf(schema) }];
    }),
  );
}

function formOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest as JsonObject;
}
