import { foldName } from '../../sdk/member-names.ts';

/** One sort of member whose texts are addresses that a provider reads or writes. Names are compared as `foldName` writes them. */
export interface AddressRow {
  readonly member: RegExp;
  /** The nearest member around it that is no list. Default: any. */
  readonly within?: RegExp;
  readonly use: 'read' | 'write';
  /**
   * Which texts are judged. `all`: each, because the provider uses the operator's credentials whatever the text is. `schemes`: those with
   * another scheme than http, https and data. `paths`: these, and paths of files, which servers of one's own open. `projects`: names of what a
   * cloud project keeps.
   */
  readonly judged: 'all' | 'schemes' | 'paths' | 'projects';
}

/**
 * Members of requests whose texts are addresses, in the bodies of all formats, at any depth. The first row that fits counts. A test compares
 * the rows with the requests of the official SDKs.
 *
 * - Google (`@google/genai` 1.x, `genai.d.ts`): `fileUri`, `gcsUri`, `uris` of `gcsSource`, `outputGcsUri`, `storageUri` of Imagen and Veo,
 *   `bigqueryUri`. An object must be public or readable with the credentials of the project that sends the request.
 * - Bedrock (`@aws-sdk/client-bedrock-runtime`, `S3Location`, `AsyncInvokeS3OutputDataConfig`): read and written with the role of the caller.
 * - Azure OpenAI batches: `input_blob`, and `url` of `output_folder`, with the managed identity of the resource.
 * - vLLM opens `file:` addresses below `--allowed-local-media-path` (docs.vllm.ai, `MediaConnector`), SGLang paths too.
 */
export const addressRows: readonly AddressRow[] = [
  {
    member: /^(?:storage_?uri|output_?gcs_?uri|output_?uri(?:_?prefix)?|output_?folder)$/,
    use: 'write',
    judged: 'all',
  },
  {
    member: /^(?:ur[il]s?|s3_?uri|input_?uri)$/,
    within: /^(?:output_?(?:folder|config|data_?config)|\w*destination|s3_?output_?data_?config)$/,
    use: 'write',
    judged: 'all',
  },
  {
    member: /^(?:gcs_?uris?|s3_?uris?|big_?query_?uri|input_?uri|input_?blob)$/,
    use: 'read',
    judged: 'all',
  },
  {
    member: /^ur[il]s?$/,
    within: /^(?:s3_?location|s3_?input_?data_?config|gcs_?source|big_?query_?source|input_?blob)$/,
    use: 'read',
    judged: 'all',
  },
  { member: /^rag_?corp(?:us|ora)$|^data_?stores?$/, use: 'read', judged: 'all' },
  { member: /^engine$/, within: /ai_?search$/, use: 'read', judged: 'all' },
  { member: /^cached_?content$/, use: 'read', judged: 'projects' },
  { member: /^(?:image|video|audio|file|document)_?ur[il]s?$/, use: 'read', judged: 'paths' },
  {
    member: /^url$/,
    within: /^(?:image|video|audio|file|document)_?url$|^source$/,
    use: 'read',
    judged: 'paths',
  },
  // Of the gateway's own words.
  { member: /^id$/, within: /^source$/, use: 'read', judged: 'schemes' },
  { member: /ur[il]s?$/, use: 'read', judged: 'schemes' },
  { member: /^(?:images?|mask|video|audio|file|input_reference)$/, use: 'read', judged: 'schemes' },
];

/**
 * Matches the text of every JSON with an address that is judged, unless letters are written as codes: a test holds it to the rows. For text
 * that nobody has parsed yet, such as messages of sockets: only what it matches is parsed for this. It looks for the end
 * of a name and then back, which takes half of the time of a search for each name: 32 us for 35 KB of short texts.
 */
export const addressSign =
  /"(?=[:\s])(?:(?<=(?:ur[il]s?|images?|mask|video|audio|file|_reference)")(?:\s{17}|\s{0,16}:(?:\s{17}|\s{0,16}(?:\[|"(?!https?:\/\/|data:))))|(?<=(?:(?:s3|gcs)_?(?:uris?|location|source)|(?:storage|output|input|query)_?(?:gcs_?|data_?)?(?:uri|folder|blob|source|config)|uri_?prefix|destination|corp(?:us|ora)|data_?stores?|ai_?search|cached_?content)"))/i;

/** The longest text that the sign looks at, in characters. */
export const longestSign = 96;

/** Names that are remembered, and how long the longest of them is. */
const mostKnown = 1000;
const longestName = 64;

/** Members in which a provider reads no address: arguments and schemas of tools, what the client notes, and what providers have said. */
const ignored: ReadonlySet<string> = new Set(
  (
    'metadata labels input_schema inputschema schema json_schema jsonschema arguments annotations citations results outputs args ' +
    'responseschema responsejsonschema response_schema response_json_schema action actions json parametersjsonschema response'
  ).split(' '),
);

/** What is known of a member by its name alone. */
export interface NamedMember {
  /** As {@link memberName} writes it. */
  readonly folded: string;
  /** True where no address is looked for in it. */
  readonly isIgnored: boolean;
  /** False where its own text is no address, whatever is around it. */
  readonly mayHaveRow: boolean;
}

/** Members by the names that requests had lately: most have few names, many times. */
const members = new Map<string, NamedMember>();

/** Returns what the name of a member says. */
export function memberNamed(name: string): NamedMember {
  let found = members.get(name);
  if (found === undefined) {
    const folded = memberName(name);
    found = {
      folded,
      isIgnored: ignored.has(folded),
      mayHaveRow: addressRows.some(({ member }) => member.test(folded)),
    };
    if (members.size < mostKnown && name.length <= longestName) members.set(name, found);
  }
  return found;
}

/** Rows by folded name and the folded name around it, of those that were asked for lately. */
const known = new Map<string, AddressRow | undefined>();

/** The row of a member; undefined for one that holds no address. */
export function addressRowOf(folded: string, within: string): AddressRow | undefined {
  if (folded.length > longestName) return addressRows.find((row) => fits(row, folded, within));
  const around = within.length > longestName ? '' : within;
  const key = `${around} ${folded}`;
  let row = known.get(key);
  if (row === undefined && !known.has(key)) {
    row = addressRows.find((one) => fits(one, folded, around));
    if (known.size < mostKnown) known.set(key, row);
  }
  return row;
}

function fits({ member, within: around }: AddressRow, folded: string, within: string): boolean {
  return member.test(folded) && (around?.test(within) ?? true);
}

/** The folded name of a member; of a form field with brackets (`image[url]`, `urls[0]`) the last one. */
function memberName(name: string): string {
  if (!name.includes('[')) return foldName(name);
  const parts = name.split(/[[\]]+/).filter((part) => part !== '' && !/^\d+$/.test(part));
  return foldName(parts.at(-1) ?? name);
}
