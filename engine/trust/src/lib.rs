//! Evidence about a component: where its bytes come from, who signed them, what was attested.
