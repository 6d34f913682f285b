-- reads: computations
-- The clusters that ran code of this fingerprint.
SELECT DISTINCT cluster FROM computations WHERE fingerprint(code) = $fingerprint ORDER BY cluster
