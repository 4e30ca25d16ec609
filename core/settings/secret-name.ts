/** Names of members and parameters that hold secrets. */
export const secretName = /auth|cookie|credential|key|pass|secret|sig(?:nature)?$|token|^code$/i;
