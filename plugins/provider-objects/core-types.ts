/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { CallKey } from 'sluice';
import type {
  HeldMemory,
  InternalTools,
  addressesIn,
  encodePartHead,
  formParserOf,
  openObjectStore,
  parseJsonLine,
  priceFor,
  requestBody,
} from 'sluice/internal';

/** Store of objects at providers. */
export type ObjectStore = ReturnType<typeof openObjectStore>;

/** An object that a provider keeps for a caller. */
export type ProviderObject = Parameters<ObjectStore['create']>[0];

/** Charge that is still to come. */
export type ObjectCharge = NonNullable<ProviderObject['charge']>;

/** Claim of a poller on objects. */
export type ObjectLease = Parameters<ObjectStore['claim']>[0];

/** Books what calls cost. */
export type Bookkeeper = InternalTools['bookkeeper'];

/** Part of a budget that is held for a call. */
export type Reservation = Awaited<ReturnType<Bookkeeper['reserve']>>;

/** Charge and record of a call that has ended. */
export type Settlement = Parameters<Bookkeeper['enqueue']>[0];

/** Money and tokens. */
export type Amounts = Settlement['charged'];

/** Prices of models. */
export type Prices = InternalTools['prices'];

/** Prices of the owners of a key. */
export type OwnRow = NonNullable<ReturnType<typeof priceFor>['row']>;

/** A channel of the config. */
export type Channel = InternalTools['catalog']['channels'][number];

/** Address that a request names. */
export type NamedAddress = ReturnType<typeof addressesIn>[number];

/** Parser of a form. */
export type FormParser = ReturnType<typeof formParserOf>;

/** Piece of a form. */
export type FormToken = ReturnType<FormParser['push']> extends Generator<infer Token> ? Token : never;

/** Head of a part of a form. */
export type PartHead = Parameters<typeof encodePartHead>[1];

/** Body of a request that nobody has read yet. */
export type RequestBody = typeof requestBody extends CallKey<infer Body> ? Body : never;

/** Endpoint of a plugin of this repository. */
export type WholeEndpoint = Parameters<InternalTools['endpoint']>[0];

/** Limits of bodies. */
export type BodyLimits = Parameters<typeof parseJsonLine>[1];

/** Budget of bytes for all bodies. */
export type ByteBudget = NonNullable<ConstructorParameters<typeof HeldMemory>[0]>;
