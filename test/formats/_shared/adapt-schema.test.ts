import { describe, expect, test } from 'vitest';
import { adaptSchema } from '../../../core/formats/_shared/json-schema/adapt.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { SchemaSubset } from '../../../core/model/traits.ts';

const claude: SchemaSubset = {
  closesObjects: true,
  refuses: ['minimum', 'maxItems', 'patternProperties', 'oneOf'],
  formats: ['date'],
  highestMinItems: 1,
};
const strict: SchemaSubset = { closesObjects: true, requiresAll: true, refuses: ['allOf', 'oneOf', 'not'] };

function adapt(schema: JsonObject, subset = claude): { schema: JsonObject; dropped: string[] } {
  const dropped: string[] = [];
  return { schema: adaptSchema(schema, subset, { drop: (path) => dropped.push(path) }), dropped };
}

describe('a JSON Schema for a model that takes a part of it', () => {
  test('objects are closed, in definitions, lists and branches too', () => {
    const open = { type: 'object', properties: { a: { type: 'string' } } };
    const closed = { ...open, additionalProperties: false };
    expect(
      adapt({
        type: ['object', 'null'],
        properties: {
          list: { type: 'array', items: open },
          either: { anyOf: [open, { $ref: '#/$defs/one' }] },
        },
        $defs: { one: open },
      }),
    ).toEqual({
      schema: {
        type: ['object', 'null'],
        properties: {
          list: { type: 'array', items: closed },
          either: { anyOf: [closed, { $ref: '#/$defs/one' }] },
        },
        $defs: { one: closed },
        additionalProperties: false,
      },
      dropped: [],
    });
  });

  test('further properties that were allowed are reported', () => {
    const { schema, dropped } = adapt({
      type: 'object',
      properties: { map: { type: 'object', additionalProperties: { type: 'number' } } },
    });
    expect(schema.properties).toEqual({ map: { type: 'object', additionalProperties: false } });
    expect(dropped).toEqual(['properties.map.additionalProperties']);
  });

  test('constraints that are refused move to the description', () => {
    expect(adapt({ type: 'integer', description: 'Age', minimum: 0, title: 'A' }).schema).toEqual({
      type: 'integer',
      description: 'Age\n\n{minimum: 0}',
      title: 'A',
    });
    expect(adapt({ type: 'array', minItems: 2, maxItems: 3 }).schema).toEqual({
      type: 'array',
      description: '{minItems: 2, maxItems: 3}',
    });
    expect(adapt({ type: 'string', format: 'phone' }).schema).toEqual({
      type: 'string',
      description: '{format: "phone"}',
    });
  });

  test('what is taken stays the object that it was', () => {
    const schema = {
      type: 'object',
      properties: { minimum: { type: 'string', format: 'date' }, list: { type: 'array', minItems: 1 } },
      additionalProperties: false,
    };
    expect(adapt(schema).schema).toBe(schema);
    expect(adaptSchema({ minimum: 1 }, undefined, { drop: () => {} })).toEqual({ minimum: 1 });
  });

  test('oneOf becomes anyOf, and allOf one object', () => {
    expect(adapt({ oneOf: [{ type: 'string' }, { type: 'integer', minimum: 1 }] }).schema).toEqual({
      anyOf: [{ type: 'string' }, { type: 'integer', description: '{minimum: 1}' }],
    });
    expect(
      adapt({
        allOf: [
          { $ref: '#/$defs/a', description: 'Both' },
          { type: 'object', properties: { b: { type: 'number' } }, required: ['b'] },
        ],
        $defs: { a: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
      }).schema,
    ).toMatchObject({
      type: 'object',
      description: 'Both',
      properties: { a: { type: 'string' }, b: { type: 'number' } },
      required: ['a', 'b'],
      additionalProperties: false,
    });
  });

  test('optional properties become nullable and required where all must be, which is reported', () => {
    const { schema, dropped } = adapt(
      {
        type: 'object',
        properties: {
          kept: { type: 'string' },
          text: { type: 'string' },
          word: { type: 'string', enum: ['a'] },
          either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
          other: { $ref: '#/$defs/one' },
          fixed: { const: 'x' },
          already: { type: ['string', 'null'] },
        },
        required: ['kept'],
        $defs: { one: { type: 'string' } },
      },
      strict,
    );
    expect(schema.properties).toEqual({
      kept: { type: 'string' },
      text: { type: ['string', 'null'] },
      word: { type: ['string', 'null'], enum: ['a', null] },
      either: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
      other: { anyOf: [{ $ref: '#/$defs/one' }, { type: 'null' }] },
      fixed: { anyOf: [{ const: 'x' }, { type: 'null' }] },
      already: { type: ['string', 'null'] },
    });
    expect(schema.required).toEqual(['kept', 'text', 'word', 'either', 'other', 'fixed', 'already']);
    expect(dropped).toEqual(['required']);
  });

  test('references that multiply and schemas without end stay small', () => {
    const again = { allOf: [{ $ref: '#/$defs/a' }] };
    const endless = { ...again, $defs: { a: { type: 'object', properties: { x: again, y: again } } } };
    expect(JSON.stringify(adapt(endless).schema).length).toBeLessThan(8 * 1024 * 1024);
    let deep: JsonObject = { type: 'string' };
    for (let depth = 0; depth < 5000; depth += 1) deep = { type: 'array', items: deep };
    expect(adapt(deep).dropped).toHaveLength(1);
  });

  test('a property that is named like the prototype is left out', () => {
    const schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as JsonObject;
    expect(adapt(schema)).toEqual({
      schema: { type: 'object', properties: {}, additionalProperties: false },
      dropped: ['properties.__proto__'],
    });
  });
});
