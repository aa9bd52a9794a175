-- What is in stock, and what of it is reserved for which order line.
CREATE TABLE stock (
    sku  text   NOT NULL PRIMARY KEY,
    free bigint NOT NULL CHECK (free >= 0)
);

CREATE TABLE reservations (
    reservation_id text   NOT NULL PRIMARY KEY,
    sku            text   NOT NULL REFERENCES stock,
    quantity       bigint NOT NULL CHECK (quantity > 0)
);
