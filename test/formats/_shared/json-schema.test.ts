import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromSchemaSubset } from '../../../core/formats/_shared/json-schema/from-subset.ts';
import { isEmptyObject, toSchemaSubset } from '../../../core/formats/_shared/json-schema/to-subset.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { tries } from '../../support/tries.ts';

function convert(schema: JsonObject): { schema: JsonObject | undefined; dropped: string[] } {
  const dropped: string[] = [];
  const converted = toSchemaSubset(schema, { drop: (path) => dropped.push(path) });
  return { schema: converted, dropped };
}

const withProperty = (property: JsonObject): JsonObject => ({ type: 'object', properties: { a: property } });
const property = (schema: JsonObject) => {
  const { schema: converted, dropped } = convert(withProperty(schema));
  return { a: (converted?.properties as JsonObject | undefined)?.a, dropped };
};

describe('a JSON Schema for a provider that knows only a subset', () => {
  test('types are upper case', () => {
    expect(convert(withProperty({ type: 'string' })).schema).toEqual({
      type: 'OBJECT',
      properties: { a: { type: 'STRING' } },
    });
  });

  test('null is a flag', () => {
    expect(property({ type: ['string', 'null'] })).toEqual({
      a: { type: 'STRING', nullable: true },
      dropped: [],
    });
    expect(property({ anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] }).a).toEqual({
      type: 'INTEGER',
      minimum: 1,
      nullable: true,
    });
    expect(property({ enum: ['a', null] }).a).toEqual({ type: 'STRING', enum: ['a'], nullable: true });
    expect(property({ type: ['string', 'integer'] }).a).toEqual({
      anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }],
    });
  });

  test('const is an enum, oneOf is anyOf', () => {
    expect(property({ const: 'x' }).a).toEqual({ type: 'STRING', enum: ['x'] });
    expect(property({ oneOf: [{ type: 'string' }, { type: 'number' }] }).a).toEqual({
      anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }],
    });
  });

  test('references are followed, with what stands beside them', () => {
    const schema = {
      type: 'object',
      properties: {
        home: { $ref: '#/$defs/address', description: 'Home' },
        odd: { $ref: '#/definitions/a~1b%20c' },
      },
      $defs: {
        address: { type: 'object', properties: { city: { $ref: '#/$defs/city' } } },
        city: { type: 'string', minLength: 1 },
      },
      definitions: { 'a/b c': { type: 'boolean' } },
    };
    expect(convert(schema)).toEqual({
      schema: {
        type: 'OBJECT',
        properties: {
          home: {
            type: 'OBJECT',
            properties: { city: { type: 'STRING', minLength: 1 } },
            description: 'Home',
          },
          odd: { type: 'BOOLEAN' },
        },
      },
      dropped: [],
    });
  });

  test('a cycle ends', () => {
    const schema = {
      $ref: '#/$defs/node',
      $defs: {
        node: { type: 'object', properties: { value: { type: 'string' }, next: { $ref: '#/$defs/node' } } },
      },
    };
    expect(convert(schema)).toEqual({
      schema: { type: 'OBJECT', properties: { value: { type: 'STRING' }, next: { type: 'OBJECT' } } },
      dropped: ['properties.next.$ref'],
    });
    expect(convert({ $ref: '#' }).dropped).toEqual(['$ref']);
    expect(property({ $ref: 'https://example.com/schema' }).dropped).toEqual(['properties.a.$ref']);
  });

  test('references that multiply without end are cut', () => {
    const $defs: Record<string, JsonObject> = {};
    for (let level = 0; level < 40; level += 1) {
      const next = { $ref: `#/$defs/l${level + 1}` };
      $defs[`l${level}`] = { type: 'object', properties: { a: next, b: next } };
    }
    $defs.l40 = { type: 'string' };
    const { dropped } = convert({ $ref: '#/$defs/l0', $defs });
    expect(dropped.length).toBeGreaterThan(0);
  });

  test('allOf is one schema', () => {
    const schema = {
      type: 'object',
      required: ['a'],
      allOf: [
        { properties: { a: { type: 'string' } } },
        { $ref: '#/$defs/b' },
        { title: 'one' },
        { title: 'two' },
      ],
      $defs: { b: { properties: { b: { type: 'integer' } }, required: ['b'] } },
    };
    expect(convert(schema)).toEqual({
      schema: {
        type: 'OBJECT',
        required: ['a', 'b'],
        properties: { a: { type: 'STRING' }, b: { type: 'INTEGER' } },
        title: 'one',
      },
      dropped: ['allOf[3].title'],
    });
  });

  test('what the subset lacks is left out and named', () => {
    const { a, dropped } = property({
      type: 'number',
      exclusiveMinimum: 0,
      multipleOf: 2,
      maximum: 9,
      enum: [1, 2],
    });
    expect(a).toEqual({ type: 'NUMBER', maximum: 9 });
    expect(dropped).toEqual([
      'properties.a.exclusiveMinimum',
      'properties.a.multipleOf',
      'properties.a.enum',
    ]);
    expect(property({ type: 'string', format: 'uri' }).dropped).toEqual(['properties.a.format']);
    expect(property({ type: 'string', format: 'date-time' })).toEqual({
      a: { type: 'STRING', format: 'date-time' },
      dropped: [],
    });
    expect(
      convert({
        type: 'object',
        properties: { a: { type: 'string' } },
        additionalProperties: false,
        patternProperties: {},
        $schema: 'x',
      }).dropped,
    ).toEqual(['additionalProperties', 'patternProperties']);
  });

  test('arrays say what they hold', () => {
    expect(property({ type: 'array' }).a).toEqual({ type: 'ARRAY', items: { type: 'STRING' } });
    expect(property({ type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] })).toEqual({
      a: { type: 'ARRAY', items: { anyOf: [{ type: 'STRING' }, { type: 'INTEGER' }] } },
      dropped: ['properties.a.prefixItems'],
    });
  });

  test('only named properties are required', () => {
    expect(
      convert({ type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'ghost'] }),
    ).toEqual({
      schema: { type: 'OBJECT', properties: { a: { type: 'STRING' } }, required: ['a'] },
      dropped: ['required'],
    });
  });

  test('an object without properties is no schema at all', () => {
    expect(convert({ type: 'object', properties: {} }).schema).toBeUndefined();
    expect(convert({ type: 'object' }).schema).toBeUndefined();
    expect(convert({}).schema).toBeUndefined();
    expect(isEmptyObject({ type: 'object', additionalProperties: { type: 'string' } })).toBe(false);
    expect(isEmptyObject({ type: 'string' })).toBe(false);
  });

  test('anything that is JSON is survived', () => {
    const key = fc.constantFrom(
      'type',
      'properties',
      'items',
      'anyOf',
      'oneOf',
      'allOf',
      '$ref',
      '$defs',
      'enum',
      'const',
      'required',
      'format',
      'nullable',
      'a',
      '__proto__',
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(
          'object',
          'array',
          'string',
          'null',
          '#',
          '#/$defs/a',
          '#/properties/a',
          null,
          1,
          true,
        ),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(key, tie('any'), { maxKeys: 4 }),
      ),
    })).any;
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 6 }), (schema) => {
        expect(() => convert(schema as JsonObject)).not.toThrow();
        expect(() => fromSchemaSubset(schema as JsonObject)).not.toThrow();
      }),
      { numRuns: tries(500) },
    );
  });
});

describe('a subset schema for everyone else', () => {
  test('is JSON Schema', () => {
    expect(
      fromSchemaSubset({
        type: 'OBJECT',
        properties: {
          b: { type: 'ARRAY', items: { type: 'STRING', nullable: true }, min_items: '2' },
          a: { any_of: [{ type: 'NUMBER' }, { type: 'BOOLEAN' }], nullable: true },
          c: { type: 'STRING', format: 'enum', enum: ['x'], nullable: true, example: 'x' },
        },
        propertyOrdering: ['a', 'b'],
      }),
    ).toEqual({
      type: 'object',
      properties: {
        a: { anyOf: [{ type: 'number' }, { type: 'boolean' }, { type: 'null' }] },
        b: { type: 'array', items: { type: ['string', 'null'] }, minItems: 2 },
        c: { type: ['string', 'null'], enum: ['x', null], examples: ['x'] },
      },
    });
  });

  test('keeps the order that was asked for', () => {
    const schema = fromSchemaSubset({
      properties: { a: {}, b: {}, c: {} },
      propertyOrdering: ['c', 'ghost', 'a'],
    });
    expect(Object.keys(schema.properties as object)).toEqual(['c', 'a', 'b']);
  });

  test('comes back the same', () => {
    const subset = {
      type: 'OBJECT',
      properties: {
        a: { type: 'STRING', nullable: true },
        b: { type: 'ARRAY', items: { type: 'INTEGER', format: 'int32' } },
      },
      required: ['a'],
    };
    expect(toSchemaSubset(fromSchemaSubset(subset), { drop: () => {} })).toEqual(subset);
  });
});
