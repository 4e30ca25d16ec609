import { existsSync, writeFileSync } from 'node:fs';
import { changelogNow, linesOf, recorded, recordFile, surface } from './surface.ts';

// Records the public surface. It asks for a line in the changelog first, as whoever imports a changed name wants to read one.
const lines = linesOf(surface());
const last = existsSync(recordFile) ? recorded() : undefined;
if (last !== undefined && last.lines.join('\n') === lines.join('\n')) console.log('Nothing has changed.');
else if (last?.changelog === changelogNow()) {
  console.error(
    'The surface has changed: say so under "For plugin authors" in CHANGELOG.md, and run this again.',
  );
  process.exitCode = 1;
} else {
  writeFileSync(recordFile, `${[changelogNow(), ...lines].join('\n')}\n`);
  console.log(`Recorded ${lines.length} declarations.`);
}
