//! Sources to documents: reading, extraction, filters, deduplication and the ledger.
