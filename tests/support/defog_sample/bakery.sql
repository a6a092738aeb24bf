-- A dump of ours in the form of the evaluation set's, with everything that their loader must read.
CREATE TABLE public.shop (
  id SERIAL PRIMARY KEY,
  city text NOT NULL,
  country text DEFAULT ''::text NOT NULL,
  opened date -- NULL if planned
);

CREATE TABLE public.loaf (
  loaf_id varchar(10) PRIMARY KEY,
  name varchar(40) NOT NULL UNIQUE,
  kind varchar(20) NOT NULL, -- possible values: wheat, rye, mixed
  price numeric(10,2) NOT NULL,
  weight double precision,
  is_vegan boolean NOT NULL
);

CREATE TABLE public.sale (
  id SERIAL PRIMARY KEY,
  shop_id INTEGER NOT NULL REFERENCES shop(id),
  loaf_id varchar(10) NOT NULL,
  sold_at timestamp NOT NULL,
  sold_ms bigint NOT NULL,
  pieces INTEGER NOT NULL,
  booked varchar(25), -- yyyyMMdd HH:mm:ss
  crtd_ts TIMESTAMP NOT NULL DEFAULT NOW()
);

INSERT INTO public.shop (id, city, country, opened) VALUES
(1, 'Köln', 'Germany', '2019-05-01'),
(2, 'Bern', 'Switzerland', CURRENT_DATE - INTERVAL '2 years'),
(3, 'Gent', 'Belgium', NULL);

INSERT INTO public.loaf (loaf_id, name, kind, price, weight, is_vegan) VALUES
('L1', 'Baker''s best', 'wheat', 3.20, 0.5, true),
('L2', 'Dark; dense', 'rye', 4.05, 1.25, true),
('L3', 'Brioche', 'wheat', 5.50, -0.0, false);

INSERT INTO public.sale (id, shop_id, loaf_id, sold_at, sold_ms, pieces, booked) VALUES
(1, 1, 'L1', '2026-01-05 08:30:00', 1767601800000, 3, '20260105 08:30:00'),
(2, 1, 'L2', NOW() - INTERVAL '3 days', EXTRACT(EPOCH FROM CURRENT_TIMESTAMP - INTERVAL '3 days') * 1000, 1, TO_CHAR(NOW() - INTERVAL '3 days', '%Y%m%d %H:%i:%s')),
(3, 2, 'L1', DATE_TRUNC('month', NOW()) - INTERVAL '1 month' + INTERVAL '1 day', 0, 5, NULL);
