//! `elasticjob doctor`
