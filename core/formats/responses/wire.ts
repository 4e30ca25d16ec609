/** The format's name, in `extra`, proofs, usage and losses. */
export const formatName = 'responses';
