/**
 * Of long names the last eight characters. One ending more than those that are meant costs a search of the text, one too few would let an
 * address through.
 */
const endings =
  'url urls uri uris image images mask video audio file eference ' +
  'location source folder blob prefix tination corpus corpora tastore a_store tastores a_stores dcontent _content ' +
  // output_config, storageGcsConfig, query_data_config and their like.
  'geconfig e_config utconfig t_config ryconfig y_config csconfig s_config taconfig a_config';

/** Names of objects in which each text is an address. In others the members have names of their own that tell it. */
const objects = 'isearch i_search';

/**
 * Endings of the names of all members whose texts may be addresses of storage (`core/upstream/addresses/members.ts`). The scanner of long
 * requests looks for them while it reads, so that most requests need no search of their own, which takes 35 us at 77 messages. A test holds
 * the endings to the rows.
 */
export const addressEndings: readonly NameEnding[] = [
  ...endings.split(' ').map((ending) => ({ ending, countsObjects: false })),
  ...objects.split(' ').map((ending) => ({ ending, countsObjects: true })),
];

/** An ending of names of members that the scanner looks for. */
export interface NameEnding {
  /** Two to eight characters; in lower case, which stands for upper case too. */
  readonly ending: string;
  /** False: a name does not count whose value is an object, as in the schemas of tools, where `url` is often one. */
  readonly countsObjects: boolean;
}
