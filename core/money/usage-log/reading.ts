/** Dependencies of the readers of record lists. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { RecordIndexes } from './record-indexes.ts';
import type { Select } from './selecting.ts';

/** Dependencies of a list reader. `slices`: maximum number of slices of records that one page reads. */
export interface Reading {
  readonly query: Query;
  readonly kind: Database['kind'];
  readonly indexes: RecordIndexes;
  readonly select: Select;
  readonly slices: number;
}
