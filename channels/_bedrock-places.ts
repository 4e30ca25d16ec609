import type { ChannelTools, Upstream } from 'sluice';
import { hideSecret, type KeyRegion } from 'sluice/internal';
import { AwsIdentity } from './_aws-identity.ts';
import type { AwsCredentials } from './_aws-signature.ts';
import { refusalTeller } from './_refusals.ts';

/** What of a channel's options says where it asks, and as whom. */
export interface PlaceOptions {
  readonly baseUrl?: string | undefined;
  readonly region?: string | undefined;
  readonly regions?: readonly string[] | undefined;
  readonly regionOrder: 'turns' | 'preference';
  readonly profile?: string | undefined;
  readonly roleArn?: string | undefined;
  readonly externalId?: string | undefined;
}

type Tools = Pick<ChannelTools, 'keys' | 'log'>;

/** A region, and who asks there. */
export interface Place {
  readonly region: string;
  /** Index of its key in `tools.keys`; undefined where it has none. */
  readonly key?: number;
  readonly apiKey?: string;
  readonly credentials?: () => Promise<AwsCredentials>;
  /** Tells the log of an identity that was found and is refused. */
  readonly told?: (answer: Upstream) => Upstream;
  forget(): void;
}

/** Returns the places of a channel: each of its regions with each of its keys. Throws where no region is named. */
export function placesOf(chosen: PlaceOptions, tools: Tools): readonly Place[] {
  const { region, regions, baseUrl } = chosen;
  const home = region ?? regions?.[0] ?? regionIn(baseUrl);
  if (home === undefined)
    throw new Error("it needs a region: region: 'us-east-1', or region: env('AWS_REGION').");
  const identities = new Map<string, AwsIdentity>();
  const identity = (where: string): AwsIdentity => {
    const known = identities.get(where) ?? new AwsIdentity({ ...chosen, region: where }, tools.log);
    identities.set(where, known);
    return known;
  };
  const { keys } = tools;
  return [...new Set(regions ?? [home])].flatMap((where): readonly Place[] => {
    if (keys.length === 0) return [placeOf(where, undefined, () => identity(home), tools)];
    return keys.map((key, index) => ({ ...placeOf(where, key, () => identity(home), tools), key: index }));
  });
}

/** Returns the regions of a channel with several. In order of preference each is a site, asked only where none before it can answer. */
export function regionsOf(
  { regions, regionOrder }: PlaceOptions,
  places: readonly Place[],
): { readonly regions?: readonly KeyRegion[] } {
  if (regions === undefined) return {};
  return {
    regions: places.map(({ region, key }) => ({
      region,
      ...(key === undefined ? {} : { key }),
      ...(regionOrder === 'turns' ? {} : { site: regions.indexOf(region) }),
    })),
  };
}

/** The region that an address names; for one that names none, such as a proxy's, the one that AWS itself takes. */
function regionIn(baseUrl: string | undefined): string | undefined {
  if (baseUrl === undefined) return undefined;
  return (
    /bedrock-(?:runtime(?:-fips)?|mantle)\.([a-z]{2}(?:-[a-z]+)+-\d)\./.exec(baseUrl)?.[1] ?? 'us-east-1'
  );
}

function placeOf(
  region: string,
  key: string | undefined,
  identity: () => AwsIdentity,
  { log }: Tools,
): Place {
  for (const secret of [key, ...(key?.split('|') ?? [])]) if (secret) hideSecret(secret);
  const [accessKeyId = '', secretAccessKey, sessionToken] = (key ?? '').split('|').map((part) => part.trim());
  if (secretAccessKey !== undefined) {
    const own = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
    return { region, credentials: () => Promise.resolve(own), forget() {} };
  }
  if (key !== undefined) return { region, apiKey: key, forget() {} };
  const found = identity();
  const told = refusalTeller(log, {
    who: `Amazon Bedrock in ${region}`,
    advice: `Check that it may call bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream for this model in ${region}, that the account has access to the model there, and that the clock of this machine is right.`,
  });
  return { region, credentials: () => found.credentials(), told, forget: () => found.forget() };
}

/** Where the models of a region are asked. */
export function bedrockEndpoint(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}
