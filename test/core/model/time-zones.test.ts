import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { dayOf, isTimeZone, monthOf, weekOf } from '../../../core/model/time-zones.ts';

const hour = 3_600_000;
const hoursOf = ({ start, end }: { readonly start: number; readonly end: number }): number =>
  (end - start) / hour;

describe('a day of a time zone', () => {
  test.each([
    ['Europe/Berlin', '2026-03-29T12:00Z', 23],
    ['Europe/Berlin', '2026-10-25T12:00Z', 25],
    ['Europe/Berlin', '2026-11-26T12:00Z', 24],
    ['America/New_York', '2026-11-01T12:00Z', 25],
    // The clocks change by half an hour.
    ['Australia/Lord_Howe', '2026-10-03T20:00Z', 23.5],
    // The day begins at one o'clock.
    ['Africa/Cairo', '2026-04-24T12:00Z', 23],
    ['UTC', '2026-03-29T12:00Z', 24],
  ])('of %s at %s is %d hours long', (zone, at, hours) => {
    expect(hoursOf(dayOf(zone, Date.parse(at)))).toBe(hours);
  });

  test('begins when the local date changes', () => {
    expect(dayOf('Asia/Kathmandu', Date.parse('2026-11-26T12:00Z')).start).toBe(
      Date.parse('2026-11-25T18:15Z'),
    );
    expect(dayOf('America/Los_Angeles', Date.parse('2026-07-01T06:59Z')).end).toBe(
      Date.parse('2026-07-01T07:00Z'),
    );
  });
});

test('days, weeks and months hold the moment that they are asked for, and follow each other without a gap', () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/St_Johns', 'Pacific/Apia', 'Africa/Cairo', 'Asia/Kolkata'];
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom(dayOf, weekOf, monthOf),
      fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2030, 0) }),
      (zone, spanAt, at) => {
        const span = spanAt(zone, at);
        expect(at >= span.start && at < span.end).toBe(true);
        expect(spanAt(zone, span.start)).toEqual(span);
        expect(spanAt(zone, span.end).start).toBe(span.end);
        expect(spanAt(zone, at)).toEqual(span);
      },
    ),
    { numRuns: 300 },
  );
});

test('a week begins on Monday, a month on its first day', () => {
  const at = Date.parse('2026-11-26T12:00Z');
  expect(weekOf('Europe/Berlin', at)).toMatchObject({
    start: Date.parse('2026-11-22T23:00Z'),
    end: Date.parse('2026-11-29T23:00Z'),
  });
  expect(monthOf('Europe/Berlin', Date.parse('2026-10-31T22:59Z'))).toMatchObject({
    start: Date.parse('2026-09-30T22:00Z'),
    end: Date.parse('2026-10-31T23:00Z'),
  });
});

test.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Mars/Olympus', false],
  ['+02:00', false],
  ['', false],
])('%s is a time zone: %s', (name, is) => {
  expect(isTimeZone(name)).toBe(is);
});

test('the name of a time zone that was found is not looked up again', () => {
  const lookUp = vi.spyOn(Intl, 'DateTimeFormat');
  onTestFinished(() => lookUp.mockRestore());
  expect([isTimeZone('Asia/Tokyo'), isTimeZone('Asia/Tokyo')]).toEqual([true, true]);
  expect(lookUp).toHaveBeenCalledTimes(1);
});
