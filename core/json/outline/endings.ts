import type { NameEnding } from '../../model/address-endings.ts';

/** Position at which scan.wat expects them. */
const [pairs, first, size, most] = [4096, 5120, 32, 96];
const capital = 0x20;

/** Writes the endings into the memory of the scanner. */
export function writeEndings(memory: Buffer, endings: readonly NameEnding[]): void {
  if (endings.length > most) throw new RangeError(`At most ${most} endings of names can be looked for.`);
  const byPair = Map.groupBy(endings, ({ ending }) => pairOf(ending));
  let number = 0;
  for (const [pair, alike] of byPair) {
    memory[pairs + pair] = number + 1;
    alike.forEach(({ ending, countsObjects }, index) => {
      const at = first + number * size;
      memory.fill(0, at, at + size);
      const from = 8 - ending.length;
      for (let offset = from; offset < 8; offset += 1) {
        memory[at + offset] = ending.charCodeAt(offset - from) | capital;
        memory[at + 8 + offset] = 255;
      }
      memory.writeUInt32LE(Number(!countsObjects), at + 16);
      memory.writeUInt32LE(Number(index < alike.length - 1), at + 20);
      number += 1;
    });
  }
}

function pairOf(ending: string): number {
  return ((ending.charCodeAt(ending.length - 1) & 31) << 5) | (ending.charCodeAt(ending.length - 2) & 31);
}
