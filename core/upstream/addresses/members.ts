/** Table of the request members that may contain storage addresses or file paths, of all formats, with fast lookups by name. */
import { foldName } from '../../sdk/member-names.ts';

/** Rule for members whose texts are addresses that a provider reads or writes. Names are compared in the form of `foldName`. */
export interface AddressRow {
  readonly member: RegExp;
  /** Name of the nearest enclosing member that is no list. Default: any. */
  readonly within?: RegExp;
  readonly use: 'read' | 'write';
  /**
   * Texts that are checked. `all`: each, because the provider uses the operator's credentials whatever the text is. `schemes`: those with
   * another scheme than http, https and data. `paths`: these, and file paths, which self-hosted servers open. `projects`: names of resources of
   * a cloud project.
   */
  readonly judged: 'all' | 'schemes' | 'paths' | 'projects';
}

/**
 * Members of requests whose texts are addresses, in the bodies of all formats, at any depth. The first row that matches counts. A test compares
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
  // Members of the neutral model.
  { member: /^id$/, within: /^source$/, use: 'read', judged: 'schemes' },
  { member: /ur[il]s?$/, use: 'read', judged: 'schemes' },
  { member: /^(?:images?|mask|video|audio|file|input_reference)$/, use: 'read', judged: 'schemes' },
];

/**
 * Matches every JSON text with an address that is checked, unless letters are escaped; a test compares it with the rows. For unparsed text, such
 * as messages of WebSockets, of which only matching ones are parsed for this check. It finds the end of a name and then looks back, which takes
 * half of the time of a search for each name: 32 us for 35 KB of short texts.
 */
export const addressSign =
  /"(?=[:\s])(?:(?<=(?:ur[il]s?|images?|mask|video|audio|file|_reference)")(?:\s{17}|\s{0,16}:(?:\s{17}|\s{0,16}(?:\[|"(?!https?:\/\/|data:))))|(?<=(?:(?:s3|gcs)_?(?:uris?|location|source)|(?:storage|output|input|query)_?(?:gcs_?|data_?)?(?:uri|folder|blob|source|config)|uri_?prefix|destination|corp(?:us|ora)|data_?stores?|ai_?search|cached_?content)"))/i;

/** Maximum length of a match of {@link addressSign} with its context, in characters. */
export const longestSign = 96;

/** Maximum number of cached names, and maximum length of each. */
const mostKnown = 1000;
const longestName = 64;

/** Members in which a provider reads no address: arguments and schemas of tools, metadata of the client, and results of providers. */
const ignored: ReadonlySet<string> = new Set(
  (
    'metadata labels input_schema inputschema schema json_schema jsonschema arguments annotations citations results outputs args ' +
    'responseschema responsejsonschema response_schema response_json_schema action actions json parametersjsonschema response'
  ).split(' '),
);

/** Facts about a member that follow from its name. */
export interface NamedMember {
  /** The name in the form of {@link memberName}. */
  readonly folded: string;
  /** True where it is not searched for addresses. */
  readonly isIgnored: boolean;
  /** False where its own text is never an address, whatever its enclosing member is. */
  readonly mayHaveRow: boolean;
}

/** Cache by name, because most requests repeat few names many times. */
const members = new Map<string, NamedMember>();

/** Returns the facts about a member's name. */
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

/** Cache of rows by folded name and folded name of the enclosing member. */
const known = new Map<string, AddressRow | undefined>();

/** Returns the row of a member; undefined for one without addresses. */
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

/** Returns the folded name of a member; for a form field with brackets (`image[url]`, `urls[0]`) that of the last name. */
function memberName(name: string): string {
  if (!name.includes('[')) return foldName(name);
  const parts = name.split(/[[\]]+/).filter((part) => part !== '' && !/^\d+$/.test(part));
  return foldName(parts.at(-1) ?? name);
}
